"""Means, standard errors and paired tests, compared with values computed by hand and by scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from runner.statistics.paired_tests import (
    PairedDifference,
    Summary,
    best,
    compare,
    compare_means,
    holm,
    median_se,
    summarise,
)

BASE = np.arange(1.0, 9.0)


def bold(better="lower", **rows):
    return best({name: dict(enumerate(values)) for name, values in rows.items()}, better)


def test_mean_and_standard_error_match_hand_calculation():
    s = summarise([1.0, 2.0, 3.0, 6.0])  # mean 3, squared deviations 4 + 1 + 0 + 9 = 14
    assert (s.mean, s.n, s.lost) == (3.0, 4, 0)
    assert s.se == pytest.approx(math.sqrt(14 / 3) / 2)
    x = np.random.default_rng(0).normal(size=13)
    assert summarise(x).se == pytest.approx(stats.sem(x), rel=1e-13)


def test_missing_values_are_counted_and_one_value_has_no_error():
    assert summarise([2.0]).se is None
    expected = Summary(2.0, pytest.approx(1.0), 2, 2)
    assert summarise([1.0, math.nan, 3.0, math.inf]) == expected
    assert math.isnan(summarise([math.nan]).mean)


def test_rounding_differences_are_ignored():
    sums = dict(enumerate(0.1 * r + 0.2 for r in range(6)))
    pair = compare(sums, dict(enumerate(0.1 * r + 0.1 + 0.1 for r in range(6))))
    assert (pair.difference, pair.in_se, pair.p) == (0.0, 0.0, 1.0)
    shifted = compare({k: v + 0.5 for k, v in sums.items()}, sums)
    assert 0.0 < shifted.se < 1e-15
    assert shifted.in_se == math.inf


def test_replicates_are_paired_by_seed_and_number():
    a = {(0, 0): 1.0, (0, 1): 2.0, (1, 0): 7.0, (1, 1): 4.0}
    b = {(1, 1): 3.0, (0, 1): 0.0, (0, 0): 0.0, (9, 9): 100.0}
    pair = compare(a, b)  # differences 1, 2, 1
    assert (pair.n, pair.difference, pair.se, pair.in_se) == pytest.approx((3, 4 / 3, 1 / 3, 4.0))
    assert math.isnan(pair.p)  # three pairs are too few


def test_wilcoxon_equals_the_exact_two_sided_test():
    a, b = (dict(enumerate(v)) for v in ([1.1, 2.2, 3.3, 4.4, 5.5], [1.0, 2, 3, 4, 5]))
    # all signs equal: 2 · 2⁻⁵, also for an improvement
    assert [compare(a, b).p, compare(b, a).p] == pytest.approx([1 / 16] * 2)


@pytest.mark.parametrize("n", [6, 12, 16])
def test_wilcoxon_is_exact_with_ties(n):
    rng = np.random.default_rng(n)
    # for 97 labels
    right = rng.integers(80, 90, n)
    other = rng.integers(78, 90, n)
    d = (right - other)[right != other]
    ranks = stats.rankdata(abs(d))
    signs = np.array(np.meshgrid(*[[0, 1]] * len(d))).reshape(len(d), -1)
    sums = ranks @ signs  # over all choices of signs
    positive_sum = ranks[d > 0].sum()
    expected = min(1.0, 2 * min((sums <= positive_sum).mean(), (sums >= positive_sum).mean()))
    # ties up to rounding
    pair = compare(dict(enumerate(right / 97)), dict(enumerate(other / 97)))
    assert len(set(abs(d))) < len(d)
    assert pair.p == pytest.approx(expected)


def test_best_set_contains_rows_that_do_not_differ_from_the_top():
    level = BASE + np.array([0.3, -0.2, 0.25, -0.28, 0.1, -0.05, 0.4, -0.3])
    rows = {"top": BASE, "level": level, "worse": BASE + 1.01}
    assert bold(**rows) == {"top", "level"}
    assert bold("higher", **{name: -values for name, values in rows.items()}) == {"top", "level"}


def test_worse_row_stays_bold_among_many_comparisons():
    rng = np.random.default_rng(3)
    alike = {f"row {i}": rng.normal(size=10) for i in range(12)}
    top = min(alike, key=lambda name: alike[name].sum())
    p = [stats.ttest_rel(v, alike[top]).pvalue for k, v in alike.items() if k != top]
    assert min(p) < 0.05
    assert bold(**alike) == set(alike)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ({"top": BASE[:6], "worse": 2 * BASE[:6] + 9}, {"top"}),
        # four pairs are too few
        ({"top": BASE[:4], "worse": 2 * BASE[:4] + 10}, set()),
        # a row with few replicates does not prevent bold type of others
        ({"top": BASE[:6], "worse": BASE[:6] + 10, "one run": [0.5]}, {"top"}),
    ],
)
def test_bold_requires_enough_pairs_for_its_tests(rows, expected):
    assert bold(**rows) == expected


def test_holm_is_monotone_and_multiplies_the_smallest_by_all():
    # four tests: d has too few pairs
    p = {"a": 0.01, "b": 0.04, "c": 0.03, "d": math.nan, "e": 0.5}
    corrected = holm({name: PairedDifference(1.0, 0.1, 6, value) for name, value in p.items()})
    # by hand; b is limited by c
    expected = {"a": 0.04, "b": 0.09, "c": 0.09, "d": math.nan, "e": 0.5}
    assert {k: v.p_holm for k, v in corrected.items()} == pytest.approx(expected, nan_ok=True)
    assert {k: v.p for k, v in corrected.items()} == pytest.approx(p, nan_ok=True)


def test_overlapping_splits_use_nadeau_and_bengio():
    a, b = (dict(enumerate(v)) for v in ([1, 2, 4, 3, 5.5], [0.5, 1, 2, 2.5, 4]))
    plain = compare_means(a, b)
    corrected = compare_means(a, b, overlap=1 / 9)
    assert plain.p == pytest.approx(stats.ttest_rel([*a.values()], [*b.values()]).pvalue)
    # σ² (1/n + test rows/training rows) for σ²/n
    assert corrected.se == pytest.approx(plain.se * math.sqrt((1 / 5 + 1 / 9) / (1 / 5)))
    t = corrected.difference / corrected.se
    assert corrected.p == pytest.approx(2 * stats.t.sf(abs(t), 4))
    assert (plain.difference, plain.n) == (corrected.difference, corrected.n)


def test_standard_error_of_a_median_is_near_the_bootstrap():
    x = np.random.default_rng(5).normal(size=101)
    draws = np.median(np.random.default_rng(6).choice(x, (5000, 101)), axis=1)
    assert median_se(x) == pytest.approx(draws.std(), rel=0.15)
    assert median_se([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1e9]) < 2.0  # not affected by an outlier
    assert median_se([3.0, 3.0, 3.0]) == 0.0
    assert median_se([3.0, 4.0]) is None
