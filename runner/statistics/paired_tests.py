"""Mean and standard error over replicates, and paired comparisons.

Replicates are paired if they share seed and index: they then saw the same training rows
and the same random streams.  Tests of one table are corrected for their number by Holm
(1979): each p is given with its corrected value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata, wilcoxon
from scipy.stats import t as student_t
from scipy.stats.mstats import median_cihs

from components.metrics.names import ScoreDirection
from runner.statistics.standard_error import mean_se

K = TypeVar("K")
ReplicateScores = dict[tuple[int, int], float]  # (seed, replicate) -> score
Values = Mapping[tuple[int, int], float]
LEVEL = 0.05  # of all tests, after Holm's correction
MIN_PAIRS = 5  # fewer pairs have no p
MAX_EXACT_PAIRS = 50  # the signed-rank test of more is asymptotic
DIGITS = 10  # of a difference
MIN_REPLICATES = 5  # of fewer a verdict is "indicative"
ROUNDING = 1e-12  # relative; smaller differences and spreads count as zero


@dataclass(frozen=True)
class Summary:
    """Mean and SE over the finite replicates; ``lost`` counts the others."""

    mean: float
    se: float | None  # None: one replicate has no SE
    n: int
    lost: int = 0

    @property
    def note(self) -> str:
        """How many replicates are left out; empty if none is."""
        if not self.lost:
            return ""
        return f"{self.lost} of {self.n + self.lost} replicates not finite, left out"


def _finite(values: Iterable[float]) -> list[float]:
    return [float(v) for v in values if math.isfinite(v)]


def summarise(values: Iterable[float]) -> Summary:
    """Summary of the finite values."""
    all_values = list(values)
    finite = _finite(all_values)
    n = len(finite)
    mean, se = mean_se(finite)
    return Summary(mean, se if n > 1 else None, n, len(all_values) - n)


def median_se(values: Iterable[float]) -> float | None:
    """Standard error of the median of the finite values; None: fewer than three.

    Half of the distribution-free interval that holds the median as often as one SE to either
    side of a normal mean does; single outliers do not move it.

    Source: Hettmansperger and Sheather (1986)."""
    finite = _finite(values)
    if len(finite) < 3:
        return None
    low, high = median_cihs(finite, alpha=2 * norm.sf(1.0))
    return float(high - low) / 2


def inflate(se: float | None, n: int, overlap: float) -> float | None:
    """SE over n splits that share rows: with ρ the correlation of two of them and overlap =
    ρ/(1 − ρ), SE √(1 + n · overlap) replaces σ²/n by σ² (1/n + overlap).

    Source: Nadeau and Bengio (2003), with ρ the share of tested rows, so that overlap is test rows over
    training rows."""
    return None if se is None else se * math.sqrt(1.0 + n * overlap)


def median_iqr(values: Iterable[float]) -> tuple[float, float | None]:
    """Median and interquartile range of the finite values.

    NaN if there are no values; no range for a single one.
    """
    finite = _finite(values)
    if len(finite) < 2:
        return (finite[0] if finite else math.nan), None
    low, median, high = np.quantile(finite, [0.25, 0.5, 0.75])
    return float(median), float(high - low)


@dataclass(frozen=True)
class PairedDifference:
    """Paired differences a − b: their mean, its SE, and the two-sided p-value of a test that a and b
    differ."""

    difference: float
    se: float | None
    n: int
    p: float  # NaN with fewer than 5 pairs
    # corrected for all pairs tested with it; NaN as above, or not corrected yet
    p_holm: float = math.nan

    @property
    def in_se(self) -> float:
        """The difference in its own standard errors."""
        if self.se is None:
            return math.nan
        if self.se <= ROUNDING * abs(self.difference):
            return 0.0 if self.difference == 0.0 else math.copysign(math.inf, self.difference)
        return self.difference / self.se


def compare(a: Mapping[K, float], b: Mapping[K, float]) -> PairedDifference:
    """Differences a − b over the replicates that both have, and p of their signed-rank test.

    The statistic is Wilcoxon's (1945), exact for samples as small as ours; pairs that are equal
    carry no sign and are left out.
    """
    d = _subtract(a, b)
    pair = _summarise_pairs(d)
    if math.isnan(pair.p) or not d.any():
        return pair
    return replace(pair, p=signed_rank_p(d[d != 0.0]))


def compare_means(
    a: Mapping[K, float], b: Mapping[K, float], overlap: float = 0.0
) -> PairedDifference:
    """Differences a − b over the replicates that both have, and p of Student's t test of their mean
    with n − 1 degrees of freedom; the SE allows for splits that share rows (``inflate``).
    Differences without spread are tested by their signs."""
    d = _subtract(a, b)
    pair = _summarise_pairs(d, overlap)
    if math.isnan(pair.p) or not pair.difference:
        return pair
    p = signed_rank_p(d) if math.isinf(pair.in_se) else t_p(pair.in_se, pair.n - 1)
    return replace(pair, p=p)


def t_p(in_se: float, freedom: float) -> float:
    """Two-sided p of a difference in its SE, by Student's t."""
    return float(2 * student_t.sf(abs(in_se), freedom))


def _subtract(a: Mapping[K, float], b: Mapping[K, float]) -> NDArray[np.float64]:
    """Differences [n] over the keys with finite values in both; those by rounding are 0."""
    keys = [k for k in a if k in b and math.isfinite(a[k]) and math.isfinite(b[k])]
    return np.array(
        [0.0 if math.isclose(a[k], b[k], rel_tol=ROUNDING) else a[k] - b[k] for k in keys]
    )


def _summarise_pairs(d: NDArray[np.float64], overlap: float = 0.0) -> PairedDifference:
    """Mean and SE of differences [n]; p is 1 until it is tested, NaN of fewer than five."""
    summary = summarise(d)
    se = inflate(summary.se, summary.n, overlap)
    return PairedDifference(summary.mean, se, summary.n, 1.0 if d.size >= MIN_PAIRS else math.nan)


def signed_rank_p(differences: NDArray[np.float64]) -> float:
    """Two-sided p of Wilcoxon's signed-rank test of differences [n] that are not 0.

    Exact up to ``MAX_EXACT_PAIRS``, among ties (mean ranks) too: each rank r multiplies the
    generating function of the positive ranks' sum by (1 + z^r)/2.  Differences of scores that are
    counts tie but for rounding, which ``DIGITS`` takes out."""
    rounded = np.array([float(f"{d:.{DIGITS}g}") for d in differences])
    if rounded.size > MAX_EXACT_PAIRS:
        return float(wilcoxon(rounded).pvalue)
    twice = np.rint(2 * rankdata(np.abs(rounded))).astype(int)  # mean ranks are halves
    law = np.ones(1)
    for rank in twice:
        law = (np.pad(law, (0, rank)) + np.pad(law, (rank, 0))) / 2
    positive = int(twice[rounded > 0].sum())
    return min(1.0, 2 * float(min(law[: positive + 1].sum(), law[positive:].sum())))


def holm(pairs: Mapping[K, PairedDifference]) -> dict[K, PairedDifference]:
    """The same comparisons with p corrected for their number."""
    corrected = holm_p({name: pair.p for name, pair in pairs.items()})
    return {name: replace(pair, p_holm=corrected[name]) for name, pair in pairs.items()}


def holm_p(p: Mapping[K, float]) -> dict[K, float]:
    """p corrected for how many they are, those that are not NaN: the i-th smallest of m, i = 0 …
    m − 1, times m − i, no smaller than the ones before it and at most 1.

    Source: Holm (1979)."""
    tested = sorted((name for name in p if not math.isnan(p[name])), key=lambda name: p[name])
    corrected = dict(p)
    largest = 0.0
    for i, name in enumerate(tested):
        largest = max(largest, min(1.0, p[name] * (len(tested) - i)))
        corrected[name] = largest
    return corrected


def best(
    rows: Mapping[str, Values],
    better: ScoreDirection | None,
    level: float = LEVEL,
    overlap: float = 0.0,
) -> set[str]:
    """The row with the best mean and every row that does not differ significantly from it.

    Reports print them in bold.  The two-sided tests of a column are corrected for their number
    (Holm): in at most ``level`` of all columns, any row is wrongly separated from the best.
    Rows of fewer than ``MIN_PAIRS`` replicates cannot reach significance and are
    excluded.  Empty where neither side is better, when fewer than two rows are left, and when
    one of them shares too few replicates with the best."""
    summaries = {name: summarise(v.values()) for name, v in rows.items()}
    means = {name: s.mean for name, s in summaries.items() if s.n >= MIN_PAIRS}
    if len(means) < 2 or better is None:
        return set()
    top = (min if better == "lower" else max)(means, key=lambda name: means[name])
    against = holm(
        {name: compare_means(rows[name], rows[top], overlap) for name in means if name != top}
    )
    if any(math.isnan(pair.p) for pair in against.values()):
        return set()
    return {top} | {name for name, pair in against.items() if pair.p_holm > level}
