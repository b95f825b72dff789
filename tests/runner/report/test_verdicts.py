"""Published numbers, and verdicts on our scores."""

import math

import pytest
from scipy import stats

from runner import CONF
from runner.errors import ConfigError
from runner.report.scores.cells import Cell
from runner.statistics.paired_tests import Summary, summarise
from runner.statistics.published import Published, PublishedNumber, format_mean, load_published
from runner.statistics.verdicts import judge
from runner.study.table_specs import Row, TableSpec

parse = PublishedNumber.parse
# quantile of Student's t for SE of 0.24 and 0.1, both of five runs
BORDER = stats.t.isf(0.025, 0.26**4 / (0.24**4 / 4 + 0.1**4 / 4))
TABLE = {
    "name": "t",
    "source": "s",
    "where": "w",
    "caption": "c",
    "metric": "m",
    "better": "higher",
    "data": "d",
    "columns": "dataset",
    "protocol": "p",
}


def read_number(text, **facts):
    return Published(**TABLE | {"values": {"a": {"x": text}}} | facts).number("a", "x")


@pytest.mark.parametrize(
    ("mean", "se", "better", "word"),
    [
        (0.17, 0.04, "lower", "agrees"),
        (0.60, 0.10, "lower", "worse"),
        (-0.30, 0.10, "lower", "better"),
        (0.60, 0.10, "higher", "better"),
        (-0.30, 0.10, "higher", "worse"),
        # √(0.1² + 0.24²) = 0.26 with 5.35 degrees of freedom: twice that is p = 0.098
        (0.15 + 0.26 * (BORDER - 1e-9), 0.24, "lower", "agrees"),
        (0.15 + 0.26 * (BORDER + 1e-9), 0.24, "lower", "worse"),
    ],
)
def test_verdict_uses_welch_and_satterthwaite(mean, se, better, word):
    verdict = judge(parse("0.15(0.10)"), Summary(mean, se, 5), better)
    assert verdict.word == word
    assert verdict.in_se == pytest.approx((mean - 0.15) / math.sqrt(0.1**2 + se**2))


def test_verdicts_of_a_table_are_corrected_for_their_number():
    number = parse("0.500(0.010)")
    ours = Summary(0.53, 0.01, 20)
    verdict = judge(number, ours, "lower")
    corrected = judge(number, ours, "lower", p=2 * verdict.p)
    assert verdict.p == pytest.approx(2 * stats.t.sf(0.03 / math.hypot(0.01, 0.01), 38))
    assert [verdict.word, corrected.word, corrected.p] == ["worse", "agrees", 2 * verdict.p]


NUMBER = parse("0.31(0.03)")
NO_SCORE = Summary(math.nan, None, 0, 3)


@pytest.mark.parametrize(
    ("number", "ours", "reason", "verdict"),
    [
        (NUMBER, Summary(0.3, 0.01, 5), "other data: x", "not comparable (other data: x)"),
        (NUMBER, None, "", "not run"),
        (NUMBER, Summary(0.3, None, 1), "", "not comparable (one replicate has no standard error)"),
        (NUMBER, NO_SCORE, "", "not comparable (no replicate has a finite score)"),
        (None, Summary(0.3, 0.1, 3), "", "not published"),
    ],
)
def test_verdict_without_a_comparison_has_a_reason(number, ours, reason, verdict):
    outcome = judge(number, ours, "lower", reason)
    assert (str(outcome), outcome.in_se) == (verdict, None)


def test_verdict_counts_excluded_replicates():
    why = judge(NUMBER, Summary(0.3, 0.01, 5, 1), "lower").why
    assert "1 of 6 replicates are not finite" in why


@pytest.mark.parametrize(
    ("text", "uncertainty"),
    [("0.89(0.0)", 0.005), ("0.89(0.00)", 0.005), ("-0.15(0.1)", 0.1), ("0.9", 0.05)],
)
def test_standard_error_printed_as_zero_counts_as_rounding(text, uncertainty):
    number = parse(text)
    assert (number.text, number.mean) == (text, float(text.partition("(")[0]))
    assert number.uncertainty == pytest.approx(uncertainty)
    ours = Summary(number.mean + 1.9 * uncertainty, 0.0, 5)
    assert judge(number, ours, "higher").word == "agrees"


@pytest.mark.parametrize(
    ("spread", "runs", "se"), [("se", 10, 0.03), ("sd", 9, 0.01), ("iqr", 9, 0.01 / 1.3490)]
)
def test_spread_is_read_by_its_kind(spread, runs, se):
    number = read_number("0.891(0.03)", spread=spread, runs=runs)
    assert [number.se, number.uncertainty] == pytest.approx([se] * 2, rel=1e-4)
    far = Summary(0.891 + 2.5 * math.hypot(se, 0.001), 0.001, 10)
    assert judge(number, far, "higher").word == "better"
    assert judge(number, Summary(0.891 + 1.9 * se, 0.0, 10), "higher").word == "agrees"


OURS = [0.6, 0.65, 0.7, 0.8, 1.0049]


@pytest.mark.parametrize(
    ("runs", "ours", "word"),
    [
        # one published run is compared with the spread of our runs
        (1, [*OURS, 1e9], "agrees"),
        (1, [*OURS, 1.006], "agrees"),
        (1, OURS, "agrees"),
        (1, [0.69, 0.7, 0.7, 0.71, 0.7], "better"),
        (10, [0.99, 1.0, 1.0, 1.0, 1.02], "agrees"),
        (10, [0.69, 0.7, 0.7, 0.71, 1.02], "better"),
    ],
)
def test_single_published_run_is_compared_with_our_spread(runs, ours, word):
    verdict = judge(read_number("1.01", spread=None, runs=runs), summarise(ours), "lower")
    assert verdict.word == word
    se = summarise(ours).se
    scale = math.hypot(math.sqrt(5) * se, se) if runs == 1 else math.hypot(0.005, se)
    if len(ours) == 5:
        assert verdict.in_se == pytest.approx((summarise(ours).mean - 1.01) / scale)


@pytest.mark.parametrize(
    ("within", "ours", "word"),
    [
        (0.01, [0.940, 0.941, 0.942, 0.943, 0.944], "agrees"),
        (None, [0.940, 0.941, 0.942, 0.943, 0.944], "better"),
        (0.01, [0.941, 0.943, 0.946, 0.948, 0.951], "better"),
        (0.01, [0.918, 0.919, 0.920, 0.921, 0.922], "worse"),
    ],
)
def test_single_run_agrees_within_the_tolerance_of_its_table(within, ours, word):
    """Agreement within the tolerance of the mean, otherwise by the distance from our single runs."""
    printed = parse("0.933", runs=1, within=within)
    assert judge(printed, summarise(ours), "higher").word == word


def test_few_replicates_are_indicative_and_chosen_keys_agree():
    number = parse("0.5(0.01)")
    for mean, n, better, chosen, word in (
        (0.3, 4, "lower", False, "indicative"),
        (0.3, 5, "lower", False, "better"),
        (0.3, 5, None, False, "differs"),
        (0.5, 5, "lower", True, "agrees by construction"),
        (0.3, 5, "lower", True, "better"),
    ):
        ours = Summary(mean, 0.01, n)
        assert judge(number, ours, better, by_construction=chosen).word == word


def test_table_of_medians_is_judged_by_its_median():
    spec = TableSpec(name="t", title="t", columns={"m": "nmse"}, centre="median")
    values = dict(enumerate([1.0, 1.1, 0.9, 1.0, 1.05, 1e9]))
    cell = Cell(Row(label="a", model="a", preset=""), "m", values)
    assert cell.judged(spec).mean == pytest.approx(1.025)
    assert judge(parse("1.02"), cell.judged(spec), "lower").word == "agrees"


def test_column_is_judged_by_the_direction_of_its_score():
    columns = {"NMSE": "nmse/velocity", "share": "true_found", "coverage": "coverage90/velocity"}
    mixed = TableSpec(name="t", title="t", better="lower", columns=columns)
    directions = [mixed.column_direction(column) for column in columns]
    assert directions == ["lower", "higher", None]
    words = [judge(parse("0.50(0.01)"), Summary(0.9, 0.01, 5), each).word for each in directions]
    assert words == ["worse", "better", "differs"]
    spec = TableSpec(name="t", title="t", better="lower", columns={"a": "my_loss", "b": "clusters"})
    assert [spec.column_direction(column) for column in "ab"] == ["lower", "lower"]
    message = "better: lower conflicts with accuracy, for which higher is better; remove it"
    with pytest.raises(ValueError, match=message):
        TableSpec(name="t", title="t", better="lower", columns={"a": "accuracy", "b": "auc"})


def test_rows_are_not_comparable_by_their_preset():
    spec = TableSpec(name="t", title="t", columns={"m": "nmse"}, not_comparable={"own": "other"})
    assert spec.find_obstacle(Row(label="a", model="a", preset="own")) == "other"
    assert spec.find_obstacle(Row(label="a", model="a", preset="printed")) is None


@pytest.mark.parametrize(
    ("text", "facts", "message"),
    [
        ("0.8(0.1)", {"spread": "sd", "runs": None}, "runs"),
        ("0.8(0.1)", {"spread": None, "runs": 5}, "printed in parentheses"),
        ("0.8", {"spread": "se", "runs": 5}, "nothing is printed"),
        ("0.8(0.1)", {"spread": "standard error", "runs": 5}, "se"),
        ("0.15 ± 0.1", {"spread": "se", "runs": 5}, "not a number printed"),
        (
            "0.9329",
            {"spread": None, "runs": None, "within": 0.01},
            r"within: 0\.01 requires numbers of one run; write runs: 1",
        ),
    ],
)
def test_unreadable_table_is_refused(text, facts, message):
    with pytest.raises(ValueError, match=message):
        read_number(text, **facts)


def test_unknown_table_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean boustati_table_3_1"):
        load_published("boustati_table_3_11")


def test_means_are_printed_like_the_papers():
    shown = [format_mean(*pair) for pair in ((0.3149, 0.0231), (-0.1, None), (math.nan, None))]
    assert shown == ["0.31(0.02)", "-0.10", "not finite"]


@pytest.mark.parametrize("path", sorted((CONF / "published").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_published_table_is_readable(path):
    table = load_published(path.stem)
    assert (table.name, bool(table.where), bool(table.protocol)) == (path.stem, True, True)
    assert len({len(row) for row in table.values.values()}) == 1  # no gap in a printed table
    assert all(math.isfinite(n.mean) for row in table.values.values() for n in row.values())


@pytest.mark.parametrize(
    ("table", "row", "column", "text"),
    [
        ("boustati_table_3_1", "mmdgp", 1000, "0.16(0.10)"),
        ("boustati_table_3_1", "mann2", 100, "28.22(5.39)"),
        ("boustati_table_3_1", "smdgp", 5000, "-0.16(0.1)"),
        ("boustati_table_a_2", "cgp", 1000, "0.86(0.06)"),
        ("boustati_table_a_1", "smdgp", "Images BG MNIST", "0.78(0.0)"),
        ("boustati_table_a_3", "igp", "milliseconds", "3.22(0.06)"),
        ("boustati_table_3_2", "irf", "All", "0.71(0.01)"),
    ],
)
def test_numbers_equal_those_of_the_thesis(table, row, column, text):
    assert load_published(table).number(row, column).text == text


def test_tables_of_theses_have_their_sizes_and_spreads():
    by_size = load_published("boustati_table_3_1")
    assert by_size.number("irf", 1000) is None
    assert sum(len(row) for row in by_size.values.values()) == 60
    for name in ("gallego_table_3_1", "gallego_table_3_2"):
        table = load_published(name)
        assert (table.spread, table.runs) == ("sd", 10)
        assert "standard deviations of 10 runs" in table.parentheses
    # 0.636(0.009); ours 0.66148(0.00791)
    verdict = judge(table.number("mlp", "tainted"), Summary(0.66148, 0.00791, 10), "higher")
    apart = (0.66148 - 0.636) / math.hypot(0.009 / math.sqrt(10), 0.00791)
    assert verdict.in_se == pytest.approx(apart)
    of_one = load_published("gallego_table_1_4").number("vgg", "Test acc.")
    assert of_one == parse("0.9329", runs=1, within=0.01)
