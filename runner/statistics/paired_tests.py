"""Mean and standard error over replicates, and paired comparisons.

Replicates are paired if they share seed and index, and hence training rows and random streams.
The p-values of one table are corrected for the number of tests by the method of Holm (1979).
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
Values = Mapping[tuple[int, int], float]
LEVEL = 0.05  # significance level of all tests, after Holm's correction
MIN_PAIRS = 5  # minimum number of pairs for a test
MAX_EXACT_PAIRS = 50  # for more pairs the signed-rank test is asymptotic
DIGITS = 10  # significant digits of a difference
MIN_REPLICATES = 5  # with fewer replicates a verdict is "indicative"
ROUNDING = 1e-12  # relative; smaller differences and spreads count as zero


@dataclass(frozen=True)
class Summary:
    """Mean and SE over the finite replicates; ``lost`` is the number of non-finite ones."""

    mean: float
    se: float | None  # None for one replicate, which has no SE
    n: int
    lost: int = 0

    @property
    def note(self) -> str:
        """Note on the number of omitted replicates; empty if there are none."""
        if not self.lost:
            return ""
        return f"{self.lost} of {self.n + self.lost} replicates are not finite and are omitted"


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
    """Standard error of the median of the finite values; None for fewer than three values.

    Half the length of the distribution-free interval whose coverage equals the coverage of mean ±
    SE for a normal mean; it is robust to single outliers.

    Source: Hettmansperger and Sheather (1986)."""
    finite = _finite(values)
    if len(finite) < 3:
        return None
    low, high = median_cihs(finite, alpha=2 * norm.sf(1.0))
    return float(high - low) / 2


def inflate(se: float | None, n: int, overlap: float) -> float | None:
    """SE over n splits with shared rows: SE √(1 + n · overlap), which replaces σ²/n by σ² (1/n +
    overlap), with overlap = ρ/(1 − ρ) and ρ the correlation between two splits.

    Source: Nadeau and Bengio (2003), with ρ the share of tested rows, so that overlap is test rows
    over training rows.
    """
    return None if se is None else se * math.sqrt(1.0 + n * overlap)


def median_iqr(values: Iterable[float]) -> tuple[float, float | None]:
    """Median and interquartile range of the finite values.

    NaN without values; None as the range of a single value.
    """
    finite = _finite(values)
    if len(finite) < 2:
        return (finite[0] if finite else math.nan), None
    low, median, high = np.quantile(finite, [0.25, 0.5, 0.75])
    return float(median), float(high - low)


@dataclass(frozen=True)
class PairedDifference:
    """Paired differences a − b: their mean, its SE, and the two-sided p-value of a test that a and
    b differ.
    """

    difference: float
    se: float | None
    n: int
    p: float  # NaN with fewer than 5 pairs
    # corrected for the number of pairs tested together; NaN as above, or before the correction
    p_holm: float = math.nan

    @property
    def in_se(self) -> float:
        """Difference in units of its standard error."""
        if self.se is None:
            return math.nan
        if self.se <= ROUNDING * abs(self.difference):
            return 0.0 if self.difference == 0.0 else math.copysign(math.inf, self.difference)
        return self.difference / self.se


def compare(a: Mapping[K, float], b: Mapping[K, float]) -> PairedDifference:
    """Differences a − b over common replicates, with the p-value of the signed-rank test.

    The statistic is Wilcoxon's (1945), with its exact distribution for small samples; equal pairs
    are omitted.
    """
    d = _subtract(a, b)
    pair = _summarise_pairs(d)
    if math.isnan(pair.p) or not d.any():
        return pair
    return replace(pair, p=signed_rank_p(d[d != 0.0]))


def compare_means(
    a: Mapping[K, float], b: Mapping[K, float], overlap: float = 0.0
) -> PairedDifference:
    """Differences a − b over common replicates, with the p-value of Student's t test of their mean
    with n − 1 degrees of freedom; the SE is corrected for splits with shared rows (``inflate``).
    Differences without spread are tested by a signed-rank test.
    """
    d = _subtract(a, b)
    pair = _summarise_pairs(d, overlap)
    if math.isnan(pair.p) or not pair.difference:
        return pair
    p = signed_rank_p(d) if math.isinf(pair.in_se) else t_p(pair.in_se, pair.n - 1)
    return replace(pair, p=p)


def t_p(in_se: float, freedom: float) -> float:
    """Two-sided p-value of Student's t test for a difference in units of its SE."""
    return float(2 * student_t.sf(abs(in_se), freedom))


def _subtract(a: Mapping[K, float], b: Mapping[K, float]) -> NDArray[np.float64]:
    """Differences [n] over the keys with finite values in both; differences within rounding error
    are 0.
    """
    keys = [k for k in a if k in b and math.isfinite(a[k]) and math.isfinite(b[k])]
    return np.array(
        [0.0 if math.isclose(a[k], b[k], rel_tol=ROUNDING) else a[k] - b[k] for k in keys]
    )


def _summarise_pairs(d: NDArray[np.float64], overlap: float = 0.0) -> PairedDifference:
    """Mean and SE of differences [n]; p is 1 before the test, NaN for fewer than five pairs."""
    summary = summarise(d)
    se = inflate(summary.se, summary.n, overlap)
    return PairedDifference(summary.mean, se, summary.n, 1.0 if d.size >= MIN_PAIRS else math.nan)


def signed_rank_p(differences: NDArray[np.float64]) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test of nonzero differences [n].

    Exact up to ``MAX_EXACT_PAIRS``, also with ties (mean ranks): each rank r multiplies the
    generating function of the sum of positive ranks by (1 + z^r)/2.  Differences are rounded to
    ``DIGITS`` digits, so that ties between differences of counts are detected.
    """
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
    """The given comparisons with corrected p-values."""
    corrected = holm_p({name: pair.p for name, pair in pairs.items()})
    return {name: replace(pair, p_holm=corrected[name]) for name, pair in pairs.items()}


def holm_p(p: Mapping[K, float]) -> dict[K, float]:
    """Holm-corrected p-values, ignoring NaN: the i-th smallest of m, i = 0 … m − 1, is multiplied
    by m − i; the results are made nondecreasing and at most 1.

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
    """Row with the best mean, and all rows that do not differ significantly from it.

    Reports print them in bold.  The two-sided tests of a column are corrected by Holm: the
    probability that any row of a column is wrongly separated from the best is at most ``level``.
    Rows with fewer than ``MIN_PAIRS`` replicates cannot be significant and are excluded.  Empty if
    the score has no direction, if fewer than two rows remain, or if a row shares too few replicates
    with the best.
    """
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
