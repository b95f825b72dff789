"""Means, standard errors, paired tests and verdicts against values worked by hand and against
scipy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from runner import CONF
from runner.errors import ConfigError
from runner.report.scores.cells import Cell
from runner.report.scores.recorded import scores
from runner.statistics.paired_tests import (
    PairedDifference,
    Summary,
    best,
    compare,
    holm,
    judge,
    median_se,
    summarise,
)
from runner.statistics.published import Published, PublishedNumber, format_mean, load_published
from runner.study.table_specs import Row, TableSpec


def keyed(values):
    return {(0, r): float(v) for r, v in enumerate(values)}


def test_mean_and_standard_error_by_hand():
    s = summarise([1.0, 2.0, 3.0, 6.0])  # mean 3, squared deviations 4 + 1 + 0 + 9 = 14
    assert (s.mean, s.n, s.lost) == (3.0, 4, 0)
    assert s.se == pytest.approx(math.sqrt(14 / 3) / 2)


def test_standard_error_is_scipys():
    x = np.random.default_rng(0).normal(size=13)
    assert summarise(x).se == pytest.approx(stats.sem(x), rel=1e-13)


def test_one_value_has_no_standard_error_and_lost_ones_are_counted():
    assert summarise([2.0]).se is None
    assert summarise([1.0, math.nan, 3.0, math.inf]) == Summary(
        2.0, pytest.approx(1.0), 2, 2, 1.0, 3.0
    )
    assert math.isnan(summarise([math.nan]).mean)


def test_differences_by_rounding_are_none():
    sums = keyed(0.1 * r + 0.2 for r in range(6))
    pair = compare(sums, keyed(0.1 * r + 0.1 + 0.1 for r in range(6)))
    assert (pair.difference, pair.in_se, pair.p) == (0.0, 0.0, 1.0)
    shifted = compare({k: v + 0.5 for k, v in sums.items()}, sums)
    assert 0.0 < shifted.se < 1e-15
    assert shifted.in_se == math.inf


def test_paired_comparison_pairs_by_seed_and_replicate():
    a = {(0, 0): 1.0, (0, 1): 2.0, (1, 0): 7.0, (1, 1): 4.0}
    b = {(1, 1): 3.0, (0, 1): 0.0, (0, 0): 0.0, (9, 9): 100.0}
    pair = compare(a, b)  # differences 1, 2, 1
    assert (pair.n, pair.difference) == (3, pytest.approx(4 / 3))
    assert pair.se == pytest.approx(1 / 3)
    assert pair.in_se == pytest.approx(4.0)
    assert math.isnan(pair.p)  # three pairs tell nothing


def test_wilcoxon_is_the_exact_two_sided_test():
    a, b = keyed([1.1, 2.2, 3.3, 4.4, 5.5]), keyed([1, 2, 3, 4, 5])
    assert compare(a, b).p == pytest.approx(1 / 16)  # every sign the same: 2 · 2⁻⁵
    assert compare(b, a).p == pytest.approx(1 / 16), "an improvement has its p as well"
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=10), rng.normal(0.4, 1.0, size=10)
    expected = stats.wilcoxon(x, y, alternative="two-sided").pvalue
    assert compare(keyed(x), keyed(y)).p == pytest.approx(expected)


@pytest.mark.parametrize("n", [6, 12, 16])
def test_wilcoxon_is_exact_among_ties(n):
    rng = np.random.default_rng(n)
    right, other = rng.integers(80, 90, n), rng.integers(78, 90, n)  # of 97 labels
    d = (right - other)[right != other]
    ranks = stats.rankdata(abs(d))
    signs = np.array(np.meshgrid(*[[0, 1]] * len(d))).reshape(len(d), -1)
    sums = ranks @ signs  # of every choice of signs
    here = ranks[d > 0].sum()
    expected = min(1.0, 2 * min((sums <= here).mean(), (sums >= here).mean()))
    pair = compare(keyed(right / 97), keyed(other / 97))  # ties but for rounding
    assert len(set(abs(d))) < len(d)
    assert pair.p == pytest.approx(expected)


def test_equal_rows_are_not_worse_than_each_other():
    a = keyed([1, 2, 3, 4, 5])
    assert compare(a, a).p == 1.0
    assert compare(a, a).in_se == 0.0


def test_best_is_the_top_and_all_that_do_not_differ_significantly():
    base = np.arange(1.0, 9.0)
    rows = {
        "top": keyed(base),
        "level": keyed(base + np.array([0.3, -0.2, 0.25, -0.28, 0.1, -0.05, 0.4, -0.3])),
        "worse": keyed(base + 1.01),
    }
    assert best(rows, "lower") == {"top", "level"}
    assert best({k: {i: -x for i, x in v.items()} for k, v in rows.items()}, "higher") == {
        "top",
        "level",
    }


def test_holm_multiplies_the_smallest_by_all_the_next_by_one_fewer_and_never_falls():
    # four tests: d has too few pairs
    p = {"a": 0.01, "b": 0.04, "c": 0.03, "d": math.nan, "e": 0.5}
    found = holm({name: PairedDifference(1.0, 0.1, 6, value) for name, value in p.items()})
    corrected = {name: pair.p_holm for name, pair in found.items() if name != "d"}
    # by hand; b is held up by c
    assert corrected == pytest.approx({"a": 0.04, "c": 0.09, "b": 0.09, "e": 0.5})
    assert math.isnan(found["d"].p_holm)
    assert {name: pair.p for name, pair in found.items() if name != "d"} == {
        k: p[k] for k in "abce"
    }


def test_a_row_that_is_worse_by_chance_alone_stays_bold_among_many():
    rng = np.random.default_rng(3)
    alike = {f"row {i}": keyed(rng.normal(size=10)) for i in range(12)}
    top = min(alike, key=lambda name: sum(alike[name].values()))
    assert min(compare(v, alike[top]).p for k, v in alike.items() if k != top) < 0.05
    assert best(alike, "lower") == set(alike)


def test_nothing_is_bold_where_too_few_pairs_are_tested_too_often():
    base = np.arange(6.0)
    assert best({"top": keyed(base), "worse": keyed(base + 9)}, "lower") == {"top"}
    assert (
        best({"top": keyed(base), "worse": keyed(base + 9), "worst": keyed(base + 99)}, "lower")
        == set()
    )


def test_nothing_is_bold_with_five_pairs():
    rows = {"a": keyed([1, 2, 3, 4, 5]), "b": keyed([11, 12, 13, 14, 15])}
    assert best(rows, "lower") == set()


def test_a_row_of_few_replicates_does_not_keep_the_others_from_being_bold():
    rows = {
        "top": keyed([1, 2, 3, 4, 5, 6]),
        "worse": keyed([11, 12, 13, 14, 15, 16]),
        "one run": keyed([0.5]),
    }
    assert best(rows, "lower") == {"top"}


@pytest.mark.parametrize(
    ("ours", "better", "word"),
    [
        (Summary(0.17, 0.04, 5), "lower", "agrees"),
        (Summary(0.60, 0.10, 5), "lower", "worse"),
        (Summary(-0.30, 0.10, 5), "lower", "better"),
        (Summary(0.60, 0.10, 5), "higher", "better"),
        (Summary(-0.30, 0.10, 5), "higher", "worse"),
    ],
)
def test_verdict_by_two_combined_standard_errors(ours, better, word):
    verdict = judge(PublishedNumber.parse("0.15(0.10)"), ours, better)
    assert verdict.word == word
    assert verdict.in_se == pytest.approx((ours.mean - 0.15) / math.sqrt(0.1**2 + ours.se**2))


def test_two_standard_errors_is_the_border():
    published = PublishedNumber.parse("0.00(0.30)")
    # √(0.3² + 0.4²) = 0.5
    assert judge(published, Summary(2 * 0.5 - 1e-9, 0.4, 5), "lower").word == "agrees"
    assert judge(published, Summary(2 * 0.5 + 1e-9, 0.4, 5), "lower").word == "worse"


def test_verdict_says_why_it_cannot_compare():
    number = PublishedNumber.parse("0.31(0.03)")
    other = judge(number, Summary(0.30, 0.01, 5), "lower", "other data: sarcos-test-file")
    assert str(other) == "not comparable (other data: sarcos-test-file)"
    assert other.in_se is None, "what is not comparable has no difference"
    assert str(judge(number, None, "lower")) == "not run"
    assert (
        judge(number, Summary(0.3, None, 1), "lower").why == "one replicate has no standard error"
    )
    assert judge(number, Summary(math.nan, None, 0, 3), "lower").word == "not comparable"
    assert judge(None, Summary(0.3, 0.1, 3), "lower").word == "not published"
    assert (
        judge(number, Summary(0.3, 0.01, 5, 1), "lower").why
        == "1 of 6 replicates not finite, left out"
    )


def test_a_standard_error_printed_as_zero_counts_as_the_rounding():
    assert PublishedNumber.parse("0.89(0.0)").uncertainty == pytest.approx(0.005)
    assert PublishedNumber.parse("0.89(0.00)").uncertainty == pytest.approx(0.005)
    assert PublishedNumber.parse("0.15(0.1)").uncertainty == pytest.approx(0.1)
    assert (
        judge(PublishedNumber.parse("0.89(0.00)"), Summary(0.893, 0.0, 5), "higher").word
        == "agrees"
    )


def table(text, **facts):
    told = {"name": "t", "source": "s", "where": "w", "caption": "c", "metric": "m", "better": "higher", "data": "d",
            "columns": "dataset", "protocol": "p", "values": {"a": {"x": text}}}  # fmt: skip
    return Published(**told | facts)


@pytest.mark.parametrize(
    ("spread", "runs", "se"), [("se", 10, 0.03), ("sd", 9, 0.01), ("iqr", 9, 0.01 / 1.3490)]
)
def test_a_spread_is_read_as_what_the_table_says(spread, runs, se):
    number = table("0.891(0.03)", spread=spread, runs=runs).number("a", "x")
    assert number is not None
    assert number.se == pytest.approx(se, rel=1e-4)
    assert number.uncertainty == pytest.approx(se, rel=1e-4)
    far = Summary(0.891 + 2.5 * math.hypot(se, 0.001), 0.001, 10)
    assert judge(number, far, "higher").word == "better"
    assert judge(number, Summary(0.891 + 1.9 * se, 0.0, 10), "higher").word == "agrees"


def test_a_single_run_is_one_of_ours():
    """It agrees where it lies among them, to its rounding, be their mean where it may."""
    number = table("1.01", spread=None, runs=1).number("a", "x")
    ours = [0.6, 0.65, 0.7, 0.8, 1.0049]
    assert judge(number, summarise([*ours, 1e9]), "lower").word == "agrees"
    assert judge(number, summarise([*ours, 1.006]), "lower").word == "agrees"
    assert judge(number, summarise(ours), "lower").word == "better"
    assert judge(number, summarise(ours), "lower").in_se == pytest.approx(
        (summarise(ours).mean - 1.01)
        / math.hypot(math.sqrt(5) * summarise(ours).se, summarise(ours).se)
    )
    of_many = table("1.01", spread=None, runs=10).number("a", "x")
    assert judge(of_many, summarise([0.99, 1.0, 1.0, 1.0, 1.02]), "lower").word == "agrees"
    assert judge(of_many, summarise([0.69, 0.7, 0.7, 0.71, 1.02]), "lower").word == "better"


def test_a_single_run_agrees_within_what_its_table_says():
    """Of the mean; without it, or further away, by where it lies among ours alone."""
    printed = PublishedNumber.parse("0.933", one_run=True, within=0.01)
    ours = summarise([0.940, 0.941, 0.942, 0.943, 0.944])
    assert judge(printed, ours, "higher").word == "agrees"
    assert judge(PublishedNumber.parse("0.933", one_run=True), ours, "higher").word == "better"
    assert judge(printed, summarise([0.941, 0.943, 0.946, 0.948, 0.951]), "higher").word == "better"
    assert judge(printed, summarise([0.918, 0.919, 0.92, 0.921, 0.922]), "higher").word == "worse"
    table = load_published("gallego_table_1_4")
    assert table.number("vgg", "Test acc.") == PublishedNumber.parse(
        "0.9329", one_run=True, within=0.01
    )
    with pytest.raises(
        ValidationError, match=r"within: 0\.01 is of numbers of one run; write runs: 1"
    ):
        Published(
            **table.model_dump(exclude={"values", "runs"}),
            runs=None,
            values={"vgg": {"Test acc.": 0.9329}},
        )


@pytest.mark.parametrize(
    ("text", "spread", "runs", "said"),
    [
        ("0.8(0.1)", "sd", None, "runs"),
        ("0.8(0.1)", None, 5, "printed in parentheses"),
        ("0.8", "se", 5, "nothing is printed"),
        ("0.8(0.1)", "standard error", 5, "se"),
    ],
)
def test_a_spread_that_cannot_be_read_is_refused(text, spread, runs, said):
    with pytest.raises(ValueError, match=said):
        table(text, spread=spread, runs=runs)


def test_gallegos_tables_of_spam_print_standard_deviations_of_ten_runs():
    for name in ("gallego_table_3_1", "gallego_table_3_2"):
        found = load_published(name)
        assert (found.spread, found.runs) == ("sd", 10)
        assert "standard deviations of 10 runs" in found.parentheses
    # 0.636(0.009); ours 0.66148(0.00791)
    tainted = load_published("gallego_table_3_2").number("mlp", "tainted")
    verdict = judge(tainted, Summary(0.66148, 0.00791, 10), "higher")
    assert verdict.in_se == pytest.approx(
        (0.66148 - 0.636) / math.hypot(0.009 / math.sqrt(10), 0.00791)
    )


def test_printed_digits_are_kept():
    assert PublishedNumber.parse("0.15(0.1)").text == "0.15(0.1)"
    assert PublishedNumber.parse("-0.01(0.1)").mean == -0.01
    with pytest.raises(ValueError, match="not a number printed"):
        PublishedNumber.parse("0.15 ± 0.1")


@pytest.mark.parametrize("path", sorted((CONF / "published").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_published_table_reads(path):
    table = load_published(path.stem)
    assert table.name == path.stem
    assert table.where
    assert table.protocol
    widths = {len(row) for row in table.values.values()}
    assert len(widths) == 1  # no hole in a printed table
    for row in table.values.values():
        for number in row.values():
            assert math.isfinite(number.mean)


def test_published_numbers_spot_checked_against_the_thesis():
    printed = [
        ("boustati_table_3_1", "mmdgp", 1000, "0.16(0.10)"),
        ("boustati_table_3_1", "mann2", 100, "28.22(5.39)"),
        ("boustati_table_3_1", "smdgp", 5000, "-0.16(0.1)"),
        ("boustati_table_a_2", "cgp", 1000, "0.86(0.06)"),
        ("boustati_table_a_1", "smdgp", "Images BG MNIST", "0.78(0.0)"),
        ("boustati_table_a_3", "igp", "milliseconds", "3.22(0.06)"),
        ("boustati_table_3_2", "irf", "All", "0.71(0.01)"),
    ]
    for table, model, column, text in printed:
        number = load_published(table).number(model, column)
        assert number is not None
        assert number.text == text
    nlpp = load_published("boustati_table_3_1")
    assert nlpp.number("irf", 1000) is None
    assert sum(len(row) for row in nlpp.values.values()) == 60


def test_an_unknown_table_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean boustati_table_3_1"):
        load_published("boustati_table_3_11")


def test_shown_as_the_papers_print():
    assert format_mean(0.3149, 0.0231) == "0.31(0.02)"
    assert format_mean(-0.1, None) == "-0.10"
    assert format_mean(math.nan, None) == "not finite"


def test_the_median_over_states_of_a_record_that_has_none_is_taken_from_each_state():
    by_state = {
        "nmse/x": [1.0, 2.0],
        "nmse/y": [3.0, 8.0],
        "nmse/z": [2.0, 9.0],
        "coverage90/x": [5.0, 5.0],
    }
    facts = {"seed": 3, "replicates": 2, "state": "done", "result": by_state}
    assert scores(facts, Path(), "nmse_median") == {(3, 0): 2.0, (3, 1): 8.0}
    assert scores(
        facts | {"result": by_state | {"nmse_median": [0.5, 0.6]}}, Path(), "nmse_median"
    ) == {
        (3, 0): 0.5,
        (3, 1): 0.6,
    }
    assert scores(facts | {"result": {"nmse": [1.0, 2.0]}}, Path(), "nmse_median") == {}


def test_a_column_is_judged_by_the_direction_of_its_own_score():
    columns = {"NMSE": "nmse/velocity", "share": "true_found", "coverage": "coverage90/velocity"}
    mixed = TableSpec(name="t", title="t", better="lower", columns=columns)
    assert [mixed.column_direction(column) for column in columns] == ["lower", "higher", None]
    known = PublishedNumber.parse("0.50(0.01)")
    far = Summary(0.9, 0.01, 5)
    assert [judge(known, far, mixed.column_direction(column)).word for column in columns] == [
        "worse",
        "better",
        "differs",
    ]
    own = TableSpec(name="t", title="t", better="lower", columns={"a": "my_loss", "b": "clusters"})
    assert [own.column_direction(column) for column in "ab"] == ["lower", "lower"]
    with pytest.raises(
        ValueError, match="better: lower, but accuracy is better the higher it is; leave it out"
    ):
        TableSpec(name="t", title="t", better="lower", columns={"a": "accuracy", "b": "auc"})


def test_overlapping_splits_after_nadeau_and_bengio():
    a, b = keyed([1.0, 2.0, 4.0, 3.0, 5.5]), keyed([0.5, 1.0, 2.0, 2.5, 4.0])
    plain, corrected = compare(a, b), compare(a, b, overlap=1 / 9)
    # σ² (1/n + test rows/training rows) for σ²/n
    assert corrected.se == pytest.approx(plain.se * math.sqrt((1 / 5 + 1 / 9) / (1 / 5)))
    t = corrected.difference / corrected.se
    assert corrected.p == pytest.approx(2 * stats.t.sf(abs(t), 4))
    assert (plain.difference, plain.n) == (corrected.difference, corrected.n)


def test_the_standard_error_of_a_median_is_near_the_bootstraps():
    x = np.random.default_rng(5).normal(size=101)
    draws = np.median(np.random.default_rng(6).choice(x, (5000, 101)), axis=1)
    assert median_se(x) == pytest.approx(draws.std(), rel=0.15)
    assert median_se([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1e9]) < 2.0  # an outlier does not move it
    assert median_se([3.0, 3.0, 3.0]) == 0.0
    assert median_se([3.0, 4.0]) is None


def test_a_table_of_medians_is_judged_by_its_median():
    spec = TableSpec(name="t", title="t", columns={"m": "nmse"}, centre="median")
    cell = Cell(Row(label="a", model="a", preset=""), "m", keyed([1.0, 1.1, 0.9, 1.0, 1.05, 1e9]))
    assert cell.estimate(spec)[0] == pytest.approx(1.025)
    verdict = judge(PublishedNumber.parse("1.02"), cell.judged(spec), "lower")
    assert verdict.word == "agrees"


def test_few_replicates_are_indicative_and_settings_in_view_of_print_agree_by_construction():
    number = PublishedNumber.parse("0.5(0.01)")
    assert judge(number, Summary(0.3, 0.01, 4), "lower").word == "indicative"
    assert judge(number, Summary(0.3, 0.01, 5), "lower").word == "better"
    assert judge(number, Summary(0.3, 0.01, 5), None).word == "differs"
    agrees = judge(number, Summary(0.5, 0.01, 5), "lower", by_construction=True)
    assert agrees.word == "agrees by construction"
    assert judge(number, Summary(0.3, 0.01, 5), "lower", by_construction=True).word == "better"


def test_rows_are_not_comparable_by_their_preset():
    spec = TableSpec(name="t", title="t", columns={"m": "nmse"}, not_comparable={"own": "other"})
    assert spec.find_obstacle(Row(label="a", model="a", preset="own")) == "other"
    assert spec.find_obstacle(Row(label="a", model="a", preset="printed")) is None
