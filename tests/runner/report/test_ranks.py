"""Ranks: Demšar's example, significant pairs by both tests, and bars that join similar rows."""

import numpy as np
import pandas as pd
import pytest
from support.runs.small_study import record, redefine

from components.figures.supervised.critical_difference import critical_difference_diagram
from runner.report.figures.draw import draw_figures
from runner.report.figures.ranks import Ranking, critical_difference, rank
from runner.report.results import layout_table


def test_critical_differences_equal_the_printed_ones():
    """Demšar (2006), section 3.2.2: four classifiers on 14 data sets."""
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, level=0.10) == pytest.approx(1.12, abs=0.005)


def test_friedman_equals_its_formula_and_ties_share_ranks():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4, 12)).T + np.array([0.0, 0.3, 1.0, 2.0])
    scores = pd.DataFrame(table, columns=list("abcd"))
    ranking = rank(scores, "nemenyi")
    n, k = table.shape
    by_hand = [np.mean([1 + sum(row < row[j]) for row in table]) for j in range(k)]
    assert [ranking.ranks[name] for name in "abcd"] == pytest.approx(by_hand)
    statistic = 12 * n / (k * (k + 1)) * (sum(r**2 for r in by_hand) - k * (k + 1) ** 2 / 4)
    from scipy.stats import chi2

    assert ranking.p_friedman == pytest.approx(chi2.sf(statistic, k - 1))
    other_way = rank(-scores, "nemenyi")
    assert other_way.ranks["a"] == pytest.approx(k + 1 - ranking.ranks["a"])
    equal = rank(pd.DataFrame(0.0, range(6), list("abc")), "wilcoxon")
    assert (set(equal.ranks.values()), equal.p_friedman) == ({2.0}, 1.0)
    assert equal.groups() == [["a", "b", "c"]]


def test_pairs_are_separated_by_signed_ranks_after_holm():
    base = np.arange(10.0)
    columns = {
        "a": base,
        "b": base + 1 + 0.01 * base,
        "c": base + 2 + 0.02 * base,
        "d": base + 2.5 - 0.1 * (base % 7),
    }
    scores = pd.DataFrame(columns)
    ranking = rank(scores, "wilcoxon")
    assert ranking.distance is None
    assert frozenset("ab") not in ranking.alike  # 2/2¹⁰ times six is below 5 %
    five = rank(scores[:5], "wilcoxon")
    assert len(five.alike) == 6, "five pairs have no p below 1/16"


def test_bars_join_adjacent_rows_without_differences():
    pairs = {frozenset(p) for p in ("ab", "bc", "cd", "bd")}
    ranking = Ranking({"a": 1.0, "b": 2.0, "c": 2.5, "d": 3.5}, 0.01, None, pairs)
    assert ranking.groups() == [["a", "b"], ["b", "c", "d"]]
    figure = critical_difference_diagram(ranking.ranks, ranking.groups(), 1.2)
    words = [text.get_text() for text in figure.axes[0].texts]
    assert words == ["1", "2", "3", "4", "CD = 1.20", "a  1.00", "b  2.00", "2.50  c", "3.50  d"]


def draw_ranks(study, n, sizes, **spec):
    """The diagram of a study in which the second row is best."""
    noise = np.random.default_rng(1).normal(size=n) * 0.01
    for experiment, shift in (("a", 0.3), ("b", 0.1), ("c", 0.2)):
        for size in sizes:
            record(study, experiment, size, noise + shift)
    ranked = redefine(study, ranks=[{"name": "ranked", "title": "Ranks", "table": "nlpp"} | spec])
    return draw_figures(ranked.study, ranked, layout_table(ranked.study, ranked))["ranked"]


def test_study_ranks_the_replicates_of_a_column(study):
    picture = draw_ranks(study, 9, [1000], blocks="replicates", column="1000")
    assert "mean ranks over 9 replicates of column 1000" in picture.caption
    words = [text.get_text() for text in picture.figure.axes[0].texts]
    assert any("1.00" in text and "sMDGP, tuned" in text for text in words)


def test_study_ranks_the_replicates_of_all_columns(study):
    picture = draw_ranks(study, 4, [100, 1000], blocks="all")
    assert "mean ranks over 8 replicates of all columns" in picture.caption
