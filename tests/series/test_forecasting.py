"""Forecasts of held-out observations: queries to a posterior, and scores of its forecasts."""

import math

import pytest
import torch
from support.runs.configured import component, double, generator, load

from components.posteriors.draws import Draws
from runner.execution.rng import Streams


def of_series(name, model, draws=3, **keys):
    """A problem, and a posterior of prior draws."""
    problem, rng = load(name, n_steps=20, n_ahead=4, **keys)
    built = component("model", model).build(problem, rng)
    theta = built.sample_prior(draws, generator(0))
    return problem, Draws(theta.unsqueeze(0), theta[:1], built.names, built)


def test_forecast_from_the_end_equals_the_model():
    problem, posterior = of_series("dlm_sim", "dlm")
    forecast = problem.forecast(posterior, Streams(0))
    ahead = posterior.model.forecast(posterior.flat, problem.series, 4)
    assert torch.equal(forecast.mu, ahead.mu)
    assert torch.equal(forecast.v, ahead.v)


@pytest.mark.parametrize(("name", "model"), [("dlm_sim", "dlm"), ("alternating", "hmm")])
def test_forecasts_are_factors_of_the_likelihood(name, model):
    """Σ_h log p(y_{T+h} | y_1:T+h−1, θ) = log p(y_1:T+H | θ) − log p(y_1:T | θ), for one θ."""
    problem, posterior = of_series(name, model, draws=1, origin="before")
    forecast = problem.forecast(posterior, Streams(0))
    y = problem.future[0]
    each = forecast.log_prob(y.long() if name == "alternating" else y)
    whole = problem.series._replace(y=torch.cat([problem.observations, problem.future], 1))
    expected = posterior.log_likelihood(whole) - posterior.log_likelihood(problem.series)
    assert each.sum() == pytest.approx(float(expected), rel=1e-8)


def test_scores_use_observations_hidden_from_methods():
    problem, posterior = of_series("dlm_sim", "dlm")
    scores = problem.score(posterior, Streams(0))
    assert {
        "mae",
        "predictive_entropy",
        "interval_score",
        "coverage95",
        "crps",
        "log_score",
    } <= set(scores)
    by_hand = (
        (problem.future[0, :, 0] - problem.forecast(posterior, Streams(0)).mean[:, 0]).abs().mean()
    )
    assert scores["mae"] == pytest.approx(float(by_hand))
    assert scores["log_likelihood"] == pytest.approx(
        float(posterior.log_likelihood(problem.series).mean())
    )
    assert all(
        batch.y.shape == (1, 16, 1) for _, batch in problem.batches("whole", Streams(0), 0, 2)
    )


def test_accurate_forecast_of_classes_scores_1():
    """A swaps the states and B shows the state: the alternating 0 and 1 are forecast with
    certainty."""
    problem, _ = load("alternating", classes=2)
    model = component("model", "hmm", states=2).build(problem, Streams(0))
    rows = double([[[0.001, 0.999], [0.999, 0.001]], [[0.999, 0.001], [0.001, 0.999]]])
    # stick breaking of two elements is the logit
    theta = (rows[..., :1].log() - rows[..., 1:].log()).flatten().unsqueeze(0)
    assert torch.allclose(model.constrain(theta), rows.flatten().unsqueeze(0))
    scores = problem.score(Draws(theta.unsqueeze(0), theta, model.names, model), Streams(0))
    assert scores["accuracy"] == 1
    assert scores["log_score"] == pytest.approx(0.0, abs=0.05)
    assert scores["predictive_entropy"] < 0.1


@pytest.mark.parametrize("model", ["dlm", "hmm"])
def test_figure_shows_the_forecast(model):
    problem, posterior = of_series("dlm_sim" if model == "dlm" else "hmm_sim", model)
    assert set(problem.draw(posterior, Streams(0))) == {"forecast"}


def test_description_names_the_held_back_times():
    problem, _ = load("alternating")
    assert problem.describe()["to be forecast"] == "5"


def test_many_draws_are_thinned_evenly():
    problem, posterior = of_series("dlm_sim", "dlm", draws=1201)
    forecast = problem.forecast(posterior, Streams(0))
    assert len(forecast.mu) == 500
    ends = posterior.model.forecast(posterior.flat[[0, -1]], problem.series, 4)
    assert torch.allclose(forecast.mu[[0, -1]], ends.mu)
    assert not math.isnan(float(posterior.log_likelihood(problem.series).mean()))


def test_future_forecast_has_a_table_without_scores():
    problem, posterior = of_series("dlm_sim", "dlm")
    table = problem.tables(posterior, Streams(0))["forecast"]
    forecast = problem.forecast(posterior, Streams(0))
    assert table["time"].tolist() == [1, 2, 3, 4]
    assert table["mean"].tolist() == pytest.approx(forecast.mean[:, 0].tolist())
    assert table["upper95"].tolist() == pytest.approx(forecast.quantile(0.975)[:, 0].tolist())
    assert table["observed"].tolist() == problem.future[0, :, 0].tolist()
    problem.future = torch.full_like(problem.future, math.nan)
    assert set(problem.score(posterior, Streams(0))).isdisjoint({"mae", "crps", "coverage95"})
    assert len(problem.tables(posterior, Streams(0))["forecast"]) == 4
