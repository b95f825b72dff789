"""Effects of regressors in the units of their columns, and the summary of a single draw."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from support.runs.configured import F64, component, draw_normal, generator, load, normal

from components.datasets.own.column_effects import per_unit_scores
from components.metrics.structural.coefficients import coefficient_table, effect_scores
from components.metrics.unlabelled import parameter_moments
from components.posteriors.draws import Draws
from components.series.scores.filtering import parameter_scores
from runner.execution.rng import Streams


def sales(tmp_path, change=lambda rows: rows, **keys):
    """60 weeks with a level of 200, 40 more in five holiday weeks, and 2 less for each unit of
    price."""
    g = generator(1)
    holiday = torch.zeros(60, dtype=F64)
    holiday[torch.tensor([5, 17, 28, 40, 51])] = 1
    price = 100 + 5 * normal(g, 60)
    y = 200 + 40 * holiday - 2 * (price - 100) + 0.1 * normal(g, 60)
    columns = torch.stack([y, holiday, price, 1.8 * price + 32], 1).tolist()
    rows = [[f"{value}" for value in row] for row in columns]
    rows = change([["y", "holiday", "price", "fahrenheit"], *rows])
    (tmp_path / "sales.csv").write_text("\n".join(",".join(row) for row in rows))
    keys = {"regressors": ["holiday", "price"], "n_ahead": 4} | keys
    return load("csv_series", path=str(tmp_path / "sales.csv"), **keys)[0]


def fit_model(problem, standardise=True, steps=15):
    regression = component("block", "regression", expected_size=None, standardise=standardise)
    rng = Streams(0)
    blocks = [component("block", "local_level", df=0.01), regression]
    model = component("model", "structural", blocks=blocks).build(problem, rng)
    method = component("inference", "structural_mle", restarts=1, draws=5)
    state = method.init(model, problem, rng)
    for step, batch in problem.batches("series", rng, 0, steps):
        state, _ = method.step(state, batch, rng.at("noise", step))
    return method.posterior(state)


@pytest.mark.parametrize("standardise", [True, False])
def test_effect_of_a_holiday_is_shown_in_its_unit(tmp_path, standardise):
    problem = sales(tmp_path)
    posterior = fit_model(problem, standardise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = coefficient_table(posterior, posterior).set_index("name")
        scores = problem.score(posterior, Streams(0))
    assert table.loc["holiday", "per_unit"] == pytest.approx(40, abs=0.5)
    assert table.loc["price", "per_unit"] == pytest.approx(-2, abs=0.05)
    sd = float(problem.regressors[:, 0].std(correction=0)) if standardise else 1.0
    assert table.loc["holiday", "mean"] == pytest.approx(table.loc["holiday", "per_unit"] * sd)
    assert math.isnan(table.loc["level_sd", "per_unit"])
    assert table[["sd", "lower95", "upper95", "per_unit_sd"]].isna().all(axis=None)  # of one draw
    assert not [name for name in scores if name.startswith(("sd/", "per_unit_sd/"))]
    assert scores["mean/holiday"] == pytest.approx(table.loc["holiday", "mean"])
    shown = {f"per_unit/{name}": table.loc[name, "per_unit"] for name in ("holiday", "price")}
    per_unit = {name: value for name, value in scores.items() if name.startswith("per_unit/")}
    assert per_unit == pytest.approx(shown if standardise else {})


def test_table_and_scores_agree_on_draws(tmp_path):
    posterior = fit_model(sales(tmp_path), steps=2)
    theta = posterior.draws + 0.1 * draw_normal(2, 300, posterior.draws.shape[2])
    many = replace(posterior, draws=theta)
    table = coefficient_table(many, many).set_index("name")
    scores = parameter_scores(many) | effect_scores(many, many)
    for name in ("holiday", "price"):
        for column in ("mean", "sd", "per_unit", "per_unit_sd"):
            assert scores[f"{column}/{name}"] == pytest.approx(table.loc[name, column], rel=1e-12)
        draws = theta[..., many.names.index(name)].flatten()
        inside = (draws >= table.loc[name, "lower95"]) & (draws <= table.loc[name, "upper95"])
        assert inside.double().mean() == pytest.approx(0.95, abs=0.01)


def test_missing_regressor_is_counted_by_its_column(tmp_path):
    def change(rows):
        rows[3][1] = rows[9][2] = rows[9][1] = ""
        rows[12][0] = rows[12][1] = ""  # y is also missing, so that no additional time is lost
        return rows

    facts = sales(tmp_path, change).describe()
    assert facts["left out"].startswith("2 of 56 times by models that regress")
    assert facts["left out"].endswith("holiday at 2, price at 1")
    assert "left out" not in sales(tmp_path).describe()


def test_collinear_columns_are_named(tmp_path):
    facts = sales(tmp_path, regressors=["holiday", "price", "fahrenheit"]).describe()
    assert facts["collinear"].startswith("fahrenheit with price;")
    assert "collinear" not in sales(tmp_path).describe()


def test_point_estimate_has_a_mean_without_deviation():
    point = Draws(torch.ones(1, 1, 2), torch.zeros(1, 2), ["a", "b"])
    assert set(parameter_moments.scores(point)) == {"mean/a", "mean/b"}
    assert set(parameter_scores(point, {"a": 1.5})) == {"mean/a", "mean/b", "error/a"}


def table_of_rows(tmp_path, labels, standardise):
    """40 rows with 500, 40 more on holidays, and 2 less for each unit of price; or classes a, b,
    c."""
    rng = np.random.default_rng(0)
    holiday = rng.integers(0, 2, 40)
    price = rng.normal(900, 70, 40)
    y = (500 + 40 * holiday - 2 * price).tolist() if labels == "real" else list("abca" * 10)
    table = pd.DataFrame({"holiday": holiday, "price": price, "y": y})
    table.to_csv(tmp_path / "rows.csv", index=False)
    return load("csv", path=str(tmp_path / "rows.csv"), labels=labels, standardise=standardise)[0]


@pytest.mark.parametrize("standardise", [True, False])
def test_coefficients_of_rows_are_per_unit_of_their_columns(tmp_path, standardise):
    problem = table_of_rows(tmp_path, "real", standardise)
    design = torch.cat([torch.ones(problem.n, 1), problem.train.x], 1)
    coefficients = torch.linalg.lstsq(design, problem.train.y).solution[:, 0]
    draws = Draws(
        coefficients.repeat(1, 5, 1), coefficients.unsqueeze(0), ["intercept", "x1", "x2"]
    )
    table = problem.tables(draws, Streams(0))["coefficients"].set_index("name")
    assert table["per_unit"].dropna().to_dict() == pytest.approx({"holiday": 40, "price": -2})
    assert table.loc["price", "per_unit_lower95"] == pytest.approx(-2)
    scale = problem.input_scale.numpy() if standardise else 1.0
    label = float(problem.y_std) if standardise else 1.0
    expected = np.array([40, -2]) * scale / label
    assert table.loc[["holiday", "price"], "mean"].tolist() == pytest.approx(expected)
    scores = per_unit_scores(draws, problem.input_names, [], problem.input_scale, label)
    shown = {"per_unit/holiday": 40, "per_unit/price": -2}
    assert {name: value for name, value in scores.items() if "sd" not in name} == (
        pytest.approx(shown) if standardise else {}
    )


def test_classes_have_coefficients_of_log_odds(tmp_path):
    problem = table_of_rows(tmp_path, "classes", True)
    names = [f"{name}/{k}" for k in range(3) for name in ("intercept", "x1", "x2")]
    draws = Draws(torch.ones(1, 5, 9), torch.ones(1, 9), names)
    table = problem.tables(draws, Streams(0))["coefficients"]
    per_unit = table.set_index("name")["per_unit"].dropna()
    assert list(per_unit.index) == [
        "holiday/a",
        "price/a",
        "holiday/b",
        "price/b",
        "holiday/c",
        "price/c",
    ]
    assert per_unit["price/c"] == pytest.approx(1 / float(problem.input_scale[1]))
    others = Draws(torch.ones(1, 5, 2), torch.ones(1, 2), ["a", "x1"])
    assert problem.tables(others, Streams(0)) == {}
