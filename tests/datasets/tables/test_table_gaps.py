"""User tables with gaps, dates and faults: the value of each cell, also in new rows."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from support.runs.configured import build_model, component
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from components.datasets.own.missing_words import find_cells
from components.errors import ConfigMismatchError
from components.posteriors.latent import LatentPosterior
from runner.errors import ConfigError
from runner.execution.rng import Streams
from runner.python.export.new_rows import read_rows, to_inputs

WORDS = ["", "NA", "NaN", "nan", "null", "?"]


def rows_of(n=40):
    """Columns a, b, city, when, y and part, with gaps in a and city, and in b of test rows only."""
    g = np.random.default_rng(0)
    rows = []
    for i in range(n):
        a, b, y = (f"{v:.3f}" for v in g.normal(size=3))
        city = ["Bern", "Oslo", "Rome"][i % 3]
        when = f"{1 + 7 * i % 28:02d}.{1 + i % 12:02d}.2020"
        a = "n/a" if i % 7 == 3 else a
        city = "" if i % 11 == 5 else city
        b = "-" if i == 38 else b
        rows.append([a, b, city, when, y, "test" if i >= 30 else "train"])
    return rows


def format_table(rows):
    return "\n".join(",".join(row) for row in [["a", "b", "city", "when", "y", "part"], *rows])


IMPUTE = {"gaps": "impute", "dates": "parts", "split": "part"}


def test_gaps_are_imputed_by_training_rows(tmp_path, load_table):
    problem = load_table(format_table(rows_of()), **IMPUTE)
    frame = pd.read_csv(tmp_path / "mine.csv", na_values=["n/a", "-"])
    train = frame[:30]
    days = pd.to_datetime(frame.when, format="%d.%m.%Y").dt
    expected = {
        "a": frame.a.fillna(train.a.median()),
        "a missing": frame.a.isna(),
        "b": frame.b.fillna(train.b.median()),  # no indicator: no training row has a gap
        "city Oslo": frame.city == "Oslo",
        "city Rome": frame.city == "Rome",
        "city missing": frame.city.isna(),
        "when month": days.month,
        "when weekday": days.isocalendar().day,
    }
    assert problem.input_names == list(expected)
    raw = np.stack([np.asarray(column, dtype=float) for column in expected.values()], 1)
    x = (raw - raw[:30].mean(0)) / raw[:30].std(0)
    assert_allclose(torch.cat([problem.train.x, problem.test.x]), x, atol=1e-12)
    facts = problem.describe()
    assert facts["rows with gaps"].startswith(
        "9 (a 6, b 1, city 4), imputed from the training rows"
    )
    assert facts["columns"].endswith("city: 4 texts; when: dates (month, weekday)")
    same = to_inputs(read_rows(tmp_path / "mine.csv", problem.columns), problem.columns, "rows")
    assert_close(same, torch.cat([problem.train.x, problem.test.x]))
    new = pd.DataFrame(
        {"a": [0.5], "b": [None], "city": [np.nan], "when": [pd.Timestamp("2021-03-05")]}
    )
    filled = to_inputs(new, problem.columns, "frame") * raw[:30].std(0) + raw[:30].mean(0)
    assert_allclose(filled[0], [0.5, 0, train.b.median(), 0, 0, 1, 3, 5], atol=1e-12)
    with pytest.raises(ConfigError, match=r"when is '2021-03-05', .* the form %d\.%m\.%Y"):
        to_inputs(new.assign(when="2021-03-05"), problem.columns, "frame")


def test_rows_with_gaps_are_dropped_or_refused(load_table):
    rows = rows_of()
    whole = [row for row in rows if not {"n/a", "-", ""} & {*row}]
    keys = {"dates": "days", "split": "part"}
    dropped = load_table(format_table(rows), gaps="drop", **keys)
    plain = load_table(format_table(whole), **keys)
    assert torch.equal(dropped.train.x, plain.train.x)
    assert torch.equal(dropped.test.x, plain.test.x)
    assert "9 (a 6, b 1, city 4), left out" in dropped.describe()["rows with gaps"]
    new = pd.DataFrame({"a": [None], "b": [1], "city": ["Bern"], "when": ["01.02.2020"]})
    with pytest.raises(ConfigError, match=r"row 0: a .*; fill it"):
        to_inputs(new, dropped.columns, "frame")
    with pytest.raises(ValueError, match="keep requires rows without labels"):
        load_table(format_table(rows), gaps="keep")


def test_equal_gaps_have_one_indicator(load_table):
    lines = [f"{'' if i % 5 == 0 else i},{'' if i % 5 == 0 else i * i % 7},{i}" for i in range(40)]
    problem = load_table("a,b,y\n" + "\n".join(lines), gaps="impute")
    assert problem.input_names == ["a", "a missing", "b"]


def test_gaps_of_rows_without_labels_are_imputed_in_their_units(load_table):
    g = np.random.default_rng(1)
    x = g.normal(size=(60, 2)) @ g.normal(size=(2, 4)) + 0.1 * g.normal(size=(60, 4))
    x = x * [1, 10, 0.1, 3] + [5, 0, -2, 100]
    x[g.random(x.shape) < 0.2] = np.nan
    frame = pd.DataFrame(x, columns=list("abcd"))
    problem = load_table(frame.to_csv(index=False), targets=[], gaps="keep")
    assert (
        component("dataset", "csv", path="m.csv", targets=[], gaps="keep").value_kind()
        == "incomplete"
    )
    lines = np.array(problem.lines) - 2
    learnt = x[lines[: problem.n]]
    z = (x[lines] - np.nanmean(learnt, 0)) / np.nanstd(learnt, 0)
    assert_allclose(torch.cat([problem.train.x, problem.test.x]), z, atol=1e-12)
    module = build_model("ppca", problem, latent_dim=2)
    table = problem.tables(LatentPosterior(module), Streams(0))["imputed"]
    assert len(table) == np.isnan(x).sum()
    up = module.generative.network.layers[0]
    scale = torch.tensor(np.nanstd(learnt, 0))
    W = up.weight.detach() * scale[:, None]
    v = module.generative.log_noise.exp().detach()
    law = MultivariateNormal(
        up.bias.detach() * scale + np.nanmean(learnt, 0), W @ W.T + v * torch.diag(scale**2)
    )
    for line, column, mean, sd in table.itertuples(index=False):
        row = torch.tensor(x[line - 2])
        j = "abcd".index(column)
        is_observed = ~row.isnan()
        gain = law.covariance_matrix[j, is_observed] @ torch.linalg.inv(
            law.covariance_matrix[is_observed][:, is_observed]
        )
        assert_close(mean, float(law.mean[j] + gain @ (row - law.mean)[is_observed]))
        rest = law.covariance_matrix[j, j] - gain @ law.covariance_matrix[is_observed, j]
        assert_close(sd, float(rest.sqrt()))


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (["e,e,y", "1,2,3"], "two columns have the name 'e'; rename one"),
        (["e,,y", "1,2,3"], "column 2 has no name; name it, or exclude it"),
        (["a,y", "1,1", ",2", ",3"], "line 3: a is missing .and 1 more.; set dataset.gaps=impute"),
        (["c,y", *(f"text {i},{i}" for i in range(40))], "c has 40 distinct texts"),
    ],
)
def test_faulty_table_is_refused(load_table, lines, error):
    with pytest.raises(ConfigMismatchError, match=error):
        load_table("\n".join(lines))


@pytest.mark.parametrize(
    ("cells", "error"),
    [
        (["km", "1", "2", "3"], "line 2: x is 'km', not a number, unlike the others"),
        (["5 kg", "6 kg", "7 kg", "8 kg"], "not a number; .*without %, units"),
        (
            ["nil", *map(str, range(12)), "nil", "nil"],
            "x is 'nil', not a number, unlike the others",
        ),
        (["01/02/2011", "03/04/2011", "05/06/2011"], "ambiguous: write 2011-01-31"),
        (["2011-01-03", "2011-01-04", "2012-01-04"], "a date; set dataset.dates=days"),
        (["", "", ""], "x has no value in the training rows"),
    ],
)
def test_non_numeric_input_cells_are_refused(load_table, cells, error):
    content = "x,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells))
    with pytest.raises(ConfigMismatchError, match=error):
        load_table(content)


@pytest.mark.parametrize(
    ("cells", "missing"),
    [
        (["1", "n/a", "N/A", "#N/A", "-", ".", "None", "NULL", "?", "--", "2"], range(1, 10)),
        (["Bern", "n/a", "#N/A", "NULL", "Na", "-", "None", "Na+"], (1, 2, 3)),
        (["+", "-", "+", "?"], (3,)),
        (["2020-01-05", "-"], (1,)),
    ],
)
def test_cells_without_a_value_are_gaps(cells, missing):
    cells_found = find_cells([f" {cell} " for cell in cells], WORDS)
    assert [row for row, cell in enumerate(cells_found) if cell is None] == [*missing]
    assert find_cells(["1", "-", "n/a", ""], ["x"]) == ["1", "-", "n/a", ""]


@pytest.mark.parametrize("end", [",", ",,", ", "])
def test_delimiter_at_line_ends_adds_no_column(load_table, end):
    rows = "".join(f"{i};{i * i}{end}\n".replace(",", ";") for i in range(9))
    assert load_table("x;y\n" + rows).input_names == ["x"]
    with pytest.raises(Exception, match=re.escape("3 cells for 2 names")):
        load_table(f"x,y\n{rows.replace(';', ',')}1,2,3\n")
