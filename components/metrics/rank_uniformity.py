"""Uniformity of the ranks of simulation-based calibration.

L posterior draws give ranks 0 … L.  They are uniform for a correct posterior, concentrated at both
ends if it is too narrow, in the middle if it is too wide, and on one side if it is shifted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

BAND = 0.95  # simultaneous coverage of the band around the ECDF
SIMULATIONS = 2000  # samples of uniform ranks for computing the band
NOTICED = 3.0  # standard errors above which spread or mean are reported


class RankSummary(NamedTuple):
    """Summary of the ranks of one quantity over R data sets."""

    chi2_p: float  # p-value of uniformity over bins
    ks_p: float  # p-value of uniformity, Kolmogorov–Smirnov
    # relative to uniform ranks: above 1 the posterior is too narrow, below 1 too wide
    spread: float
    mean: float  # of the fractional ranks: ½ without shift
    coverage90: float  # share in the central 90 % interval
    data_sets: int

    @property
    def verdict(self) -> str:
        """The largest deviation in words."""
        R = self.data_sets
        shift = (self.mean - 0.5) * np.sqrt(12 * R)
        # u − ½ squared has mean 1/12 and variance 1/180
        width = (self.spread**2 - 1) / 12 * np.sqrt(180 * R)
        if max(abs(shift), abs(width)) < NOTICED:
            return ""
        if abs(shift) > abs(width):
            return "draws too low" if shift > 0 else "draws too high"
        return "too narrow" if width > 0 else "too wide"


def fractions(ranks: np.ndarray, draws: int, rng: np.random.Generator) -> np.ndarray:
    """(rank + U)/(L + 1), continuous and uniform if ranks are uniform; [R]."""
    return np.asarray((ranks + rng.uniform(size=ranks.shape)) / (draws + 1))


def summarise(ranks: np.ndarray, draws: int, bins: int, rng: np.random.Generator) -> RankSummary:
    """Tests of ranks [R] in 0 … ``draws``; ``bins`` divides ``draws`` + 1."""
    from scipy.stats import chisquare, kstest  # slow to import

    counts = np.bincount(ranks * bins // (draws + 1), minlength=bins)
    u = fractions(ranks, draws, rng)
    middle = (ranks + 0.5) / (draws + 1)
    return RankSummary(
        chi2_p=float(chisquare(counts).pvalue),
        ks_p=float(kstest(u, "uniform").pvalue),
        spread=float(np.sqrt(np.mean((u - 0.5) ** 2) * 12)),
        mean=float(u.mean()),
        coverage90=float(np.mean(np.abs(middle - 0.5) < 0.45)),
        data_sets=len(ranks),
    )


def worst_p(summaries: list[RankSummary]) -> float:
    """Smallest p-value of both tests over all quantities, times their number (Bonferroni)."""
    ps = [p for summary in summaries for p in (summary.chi2_p, summary.ks_p)]
    return min(1.0, len(ps) * min(ps))


class EcdfDifference(NamedTuple):
    """ECDF(z) − z with its simultaneous band, all [R − 1]."""

    z: np.ndarray
    difference: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def ecdf_difference(ranks: np.ndarray, draws: int, rng: np.random.Generator) -> EcdfDifference:
    """ECDF of the fractional ranks of R data sets minus the uniform CDF, with its 95 % band.

    Source: Säilynoja, Bürkner and Vehtari (2022), section 2.2."""
    from arviz_stats.ecdf_utils import ecdf_pit  # imports xarray

    z, ecdf, lower, upper = ecdf_pit(fractions(ranks, draws, rng), BAND, SIMULATIONS, rng=rng)
    return EcdfDifference(z, ecdf - z, lower - z, upper - z)
