"""Columns of a CSV file as a series, and one-line errors for all invalid files."""

import math
from pathlib import Path

import pytest
import torch
from support.runs.configured import F64, component, defaults, double, load

from components.contracts.roles import Setting
from components.errors import ConfigMismatchError, DamagedFileError

FILE = str(Path(__file__).parent.parent.parent / "fixtures" / "series.csv")

WEEKS = "week,y,x,u\n2011-01-03,1,5,0\n2011-01-10,2,6,1\n2011-01-17,3,1,4\n2011-01-24,NA,2,0\n"
DATED = {"date": "week"}
BUDGET = defaults("dataset", "csv_series")["budget"]


def test_columns_missing_cells_and_truth_are_read():
    problem, _ = load(
        "csv_series",
        replicates=2,
        path=FILE,
        columns=["pm25", "wind"],
        truth=["network", "wind"],
        skip=1,
        n_steps=5,
    )
    expected = double([[5.2, 2.5], [math.nan, 2.1], [6.3, 1.9], [41.0, 2.2], [5.9, math.nan]])
    for r in range(2):
        torch.testing.assert_close(problem.observations[r], expected, equal_nan=True)
    assert problem.missing[0].tolist() == [False, True, False, False, True]
    assert problem.means[0, :, 0].tolist() == [4.4, 5.1, 5.0, 5.6, 5.7]
    assert problem.states is None
    assert problem.state_names == ["pm25", "wind"]


def test_name_changes_with_the_content(tmp_path):
    names = set()
    for content in ("y\n1\n2\n", "y\n1\n3\n"):
        (tmp_path / "mine.csv").write_text(content)
        dataset = component("dataset", "csv_series", path="mine.csv")
        names.add(dataset.identity(tmp_path, True))
        setting = Setting(tmp_path, torch.device("cpu"), F64, 1, offline=True)
        assert dataset.load(None, setting).name in names
    assert len(names) == 2
    assert all(name.startswith("csv_series-mine-") for name in names)


DAMAGED = [
    ("y,z\n1,2\n3\n", {}, "line 3: 1 cells for 2 names"),
    ("", {}, "dataset.path=.*mine.csv: the file has no rows: .* contains nothing; choose another"),
    ("\n\n", {}, "dataset.path=.*mine.csv: the file has no rows: .* contains nothing"),
    (
        "y\n",
        {},
        "dataset.path=.*mine.csv: the file has no rows: .* contains no line below the column names",
    ),
    ('y\n"1\n', {}, "invalid CSV"),
]
MISMATCHES = [
    (
        "y\n1\n",
        {"columns": ["z"]},
        "dataset.columns=z: not a column of .*mine.csv; its columns are y",
    ),
    ("y\n1\n", {"truth": ["z"]}, "dataset.truth=z: not a column of .*mine.csv"),
    (
        "y\n1\n",
        {"truth": ["y", "y"]},
        "dataset.truth: names 2 columns, but dataset.columns names 1",
    ),
    (
        "y\n1\nbad\n",
        {},
        "line 3: y is 'bad', not a number; correct it, or add it to dataset.missing",
    ),
    (
        "y\n1\ninf\n",
        {},
        "line 3: y is 'inf', not a number; correct it, or add it to dataset.missing",
    ),
    ("y\n-Infinity\n", {}, "line 2: y is '-Infinity', not a number"),
    ("y\n1e999\n", {}, "line 2: y is '1e999', not a number"),
    ("y,z\n1,2\n", {"truth": ["z"], "missing": ["2"], "columns": ["x"]}, "dataset.columns=x: "),
    ("y,z\n1,inf\n", {"truth": ["z"]}, "line 2: z is 'inf', not a number"),
    ("y\n1\n", {"skip": 1}, "has only 0 lines after dataset.skip=1"),
    ("y\n1\n2\n", {"n_steps": 5}, "dataset.n_steps=5: .* has only 2 lines"),
    (b"y\n\xff\xfe\n", {}, "line 2: y is 'ÿþ', not a number"),
    (
        "y\n1e200\n3e200\n2e200\n",
        {},
        "y of dataset.columns has values up to 3e.200, .* give .* larger units",
    ),
    (
        "y\n1e-200\n3e-200\n2e-200\n",
        {},
        "y of dataset.columns has .* squares that are 0; give .* smaller units",
    ),
    ("y\n1\n2\n", {"columns": ["y", "y"]}, "dataset.columns: lists y twice; remove one"),
    ("y\nNA\n\nNA\n", {}, "dataset.columns=y: missing at all 3 observed times"),
    ("y\nNA\n1\n", {"n_ahead": 1}, "dataset.columns=y: missing at all 1 observed times"),
    (
        "y\n1\n2\n",
        {"n_ahead": 2},
        "dataset.n_ahead=2: there are only 2 time points",
    ),
    ("y\n1\n2\n", {"regressors": ["z"]}, "dataset.regressors=z: not a column of"),
    ("y,z\n1,a\n", {"regressors": ["z"]}, "line 2: z is 'a', not a number"),
    (
        "y,z\n1,3\n2,3\n3,4\n",
        {"regressors": ["z"], "n_ahead": 1},
        "dataset.regressors=z: is 3 at all 2 observed times; remove",
    ),
    ("y,z\n1,0\n2,0\n", {"inputs": ["z"]}, "dataset.inputs=z: is 0 at all 2 observed times"),
    (
        "y,z\n1,0\n2,NA\n3,1\n",
        {"inputs": ["z"]},
        "line 3: z of dataset.inputs is missing; write 0 for no spending",
    ),
    (
        "y,z\n1,0\n2,1\n3,NA\n",
        {"regressors": ["z"], "n_ahead": 1},
        "line 4: z of dataset.regressors is missing; a forecast needs it",
    ),
    (
        WEEKS.replace("2011-01-17,3,1,4", "2011-01-17,3,NA,4"),
        {**DATED, "regressors": ["x"], "n_ahead": 2},
        "mine.csv, 2011-01-17: x of dataset.regressors is missing; a forecast needs it",
    ),
    (WEEKS, {"date": "day"}, "dataset.date=day: not a column of .*; its columns are week, y, x, u"),
    (
        WEEKS.replace("2011-01-17", "17 January"),
        DATED,
        "line 4: week '17 January' is not a date; write 2011-01-03",
    ),
    (
        WEEKS.replace("2011-01-17", "2011-01-10"),
        DATED,
        "line 4: week 2011-01-10 occurs twice; keep one",
    ),
    (
        WEEKS.replace("2011-01-17", "2011-01-09"),
        DATED,
        "line 4: week 2011-01-09 comes after 2011-01-10; sort the lines by week",
    ),
    (
        WEEKS.replace("2011-01-24", "2011-02-14"),
        DATED,
        "line 5: 3 missing between 2011-01-17 and 2011-02-14; add lines, or dataset.gaps=allow",
    ),
    (
        WEEKS.replace("2011-01-24", "2011-01-26"),
        {**DATED, "gaps": "allow"},
        "line 5: week has no equal steps between 2011-01-17 and 2011-01-26; elsewhere 7 days",
    ),
    (
        WEEKS,
        {**DATED, "n_ahead": "2012-01-01"},
        "dataset.n_ahead=2012-01-01: the series runs from 2011-01-03 to 2011-01-24; choose a date",
    ),
    (
        WEEKS,
        {"n_ahead": "2011-01-17"},
        "dataset.n_ahead=2011-01-17: a date requires a column of dates; set dataset.date",
    ),
    (
        WEEKS,
        {"inputs": ["u"], "budget": BUDGET | {"total": 2.0}},
        "dataset.budget.total=2: requires a forecast; set dataset.n_ahead",
    ),
    (
        WEEKS,
        {
            "inputs": ["u"],
            "n_ahead": 1,
            "budget": BUDGET | {"total": 2.0, "weeks": 1, "least": {"u": 3.0}},
        },
        r"dataset.budget.total=2: minimum spends \(least.u\) need 3",
    ),
]
ERRORS = [(DamagedFileError, *case) for case in DAMAGED]
ERRORS += [(ConfigMismatchError, *case) for case in MISMATCHES]


@pytest.mark.parametrize(("error", "content", "keys", "message"), ERRORS)
def test_invalid_file_is_refused_in_one_line(tmp_path, error, content, keys, message):
    path = tmp_path / "mine.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(error, match=message) as raised:
        load("csv_series", path=str(path), **keys)
    assert "\n" not in str(raised.value)


def load_text(tmp_path, text, **keys):
    (tmp_path / "mine.csv").write_text(text)
    return load("csv_series", path=str(tmp_path / "mine.csv"), **keys)[0]


def test_inputs_regressors_and_forecast_times_are_read(tmp_path):
    beside = {"regressors": ["x"], "inputs": ["u"], "columns": ["y"]}
    problem = load_text(
        tmp_path, WEEKS, **DATED, **beside, n_ahead=1, budget=BUDGET | {"total": 2.0, "weeks": 1}
    )
    assert problem.observations[0, :, 0].tolist() == [1, 2, 3]
    assert problem.regressors[:, 0].tolist() == [5, 6, 1]
    assert problem.inputs[:, 0].tolist() == [0, 1, 4]
    assert problem.beyond.x.tolist() == [[2]]
    assert problem.beyond.u.tolist() == [[0]]
    assert problem.future.isnan().all()
    assert problem.dates == ("2011-01-03", "2011-01-10", "2011-01-17", "2011-01-24")
    assert (problem.regressor_names, problem.input_names) == (["x"], ["u"])
    # the first week from this date on
    by_date = load_text(tmp_path, WEEKS, **DATED, **beside, n_ahead="2011-01-12")
    assert by_date.dates[by_date.observations.shape[1]] == "2011-01-17"


def test_gaps_are_missing_values_if_allowed(tmp_path):
    text = WEEKS.replace("2011-01-24", "2011-02-07")
    problem = load_text(tmp_path, text, **DATED, gaps="allow", regressors=["x"], inputs=["u"])
    assert problem.dates[3:] == ("2011-01-24", "2011-01-31", "2011-02-07")
    assert problem.missing[0].tolist() == [False, False, False, True, True, True]
    assert problem.regressors[3:, 0].isnan().tolist() == [True, True, False]
    assert problem.inputs[:, 0].tolist() == [0, 1, 4, 0, 0, 0]


@pytest.mark.parametrize(
    ("dates", "filled"),
    [
        (["2011-01", "2011-02", "2011-05", "2011-06"], ["2011-03", "2011-04"]),
        (["2011-01-31", "2011-02-28", "2011-04-30", "2011-05-31"], ["2011-03-31"]),
        (["2010-11-15", "2010-12-15", "2011-02-15", "2011-03-15"], ["2011-01-15"]),
        (["1960", "1961", "1963", "1964"], ["1962"]),
        (
            ["2011-01-03T22:00", "2011-01-03T23:00", "2011-01-04T01:00", "2011-01-04T02:00"],
            ["2011-01-04T00:00"],
        ),
    ],
)
def test_steps_of_months_years_and_hours_are_recognised(tmp_path, dates, filled):
    text = "d,y\n" + "".join(f"{date},{k}\n" for k, date in enumerate(dates))
    problem = load_text(tmp_path, text, date="d", gaps="allow")
    assert [date for date in problem.dates if date not in dates] == filled
    assert list(problem.dates) == sorted(problem.dates)
    assert problem.missing.sum() == len(filled)
