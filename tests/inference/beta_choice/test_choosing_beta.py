"""The choice of β: the criterion of D.3.2, another realisation, the mode over replicates, and
resumed runs."""

import math
import statistics
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import F64, component, load
from support.series.small_sequences import run, run_filter
from support.small.small_problems import advance, check_resumed
from torch.testing import assert_close

from components.errors import ConfigMismatchError, IncompleteResultWarning
from components.series.scores.predictive_loss import modal, predictive_loss, smallest, weights
from runner.execution.rng import Streams

BETAS = [0.0, 0.01, 0.1, 0.8]


def contaminate(replicates=4, n_steps=60, seed=0):
    problem, rng = load("wiener_velocity", seed=seed, replicates=replicates, n_steps=n_steps)
    problem = problem.attack(component("attacker", "gaussian_contamination"), rng)
    return problem, component("model", "linear_gaussian_ssm").build(problem, rng), rng


def choice(name, betas=BETAS, particles=100, filter="beta_bootstrap_filter", **keys):
    kalman = component("inference", filter, particles=particles)
    return component("inference", name, filter=kalman, betas=betas, **keys)


select = partial(choice, "select_beta")
online = partial(choice, "online_beta")


def test_loss_matches_d_3_2():
    means = [[[5.0, -40.0]], [[3.0, 8.0]]]
    y, predicted = np.random.default_rng(0).normal(means, 2.0, (2, 2, 9, 2))
    y[1, 4] = math.nan  # missing
    w = 1 / np.abs(np.nanmedian(y, 1, keepdims=True))
    expected = np.nanmedian((w * np.abs(y - predicted)).mean(2), 1)
    observations = torch.from_numpy(y)
    loss = predictive_loss(
        observations, torch.from_numpy(predicted), weights(observations, "inverse_median", "k")
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    assert torch.equal(weights(observations, "none", "k"), torch.ones(2, 2, dtype=F64))


def test_zero_median_is_refused():
    y = torch.tensor([[[1.0, 0.0], [2.0, 0.0], [3.0, 5.0]]])
    text = (
        "inference.standardised=inverse_median: .* dimension 2 .*; set inference.standardised=none"
    )
    with pytest.raises(ConfigMismatchError, match=text):
        weights(y, "inverse_median", "inference.standardised")


def test_ties_select_smaller_beta():
    losses = torch.tensor([[2.0, 1.0, 3.0, math.nan], [1.0, 1.0, 2.0, 1.0], [1.0, 2.0, 2.0, 0.5]])
    assert smallest(losses).tolist() == [1, 0, 1, 2]
    assert modal(torch.tensor([2, 0, 2, 0, 1])) == 0
    assert modal(torch.tensor([2, 0, 2])) == 2


def test_modal_beta_filters_the_observations():
    problem, model, rng = contaminate()
    inference = select()
    result = run(inference, model, problem, rng)
    other = problem.another(Streams(0))
    w = weights(other.observations, "inverse_median", "k")
    # The same draws as in the method: all filters process time t before the next time, with the
    # largest β first.
    rng = contaminate()[2]
    reference, elsewhere = (
        [f.init(model, data, rng) for f in inference.filters] for data in (problem, other)
    )
    for (_, batch), (_, another) in zip(
        problem.batches("observation", rng, 0, 60),
        other.batches("observation", rng, 0, 60),
        strict=True,
    ):
        for g in reversed(range(4)):
            reference[g], _ = inference.filters[g].step(reference[g], batch, rng)
        for g in range(4):
            elsewhere[g], _ = inference.filters[g].step(elsewhere[g], another, rng)
    predictions = [state.filtered.current_posterior().predicted for state in elsewhere]
    losses = torch.stack([predictive_loss(other.observations, each, w) for each in predictions])
    assert torch.equal(result.losses, losses)
    assert result.chosen == statistics.mode(sorted(losses.argmin(0).tolist()))
    assert torch.equal(result.mean, reference[result.chosen].filtered.current_posterior().mean)
    assert result.scores()["beta_selected"].tolist() == [BETAS[result.chosen]] * 4
    assert result.scored_on == "an alternative realisation"


def test_alternative_realisation_keeps_states_and_streams():
    problem, _, rng = contaminate()
    streams_state = rng.state()
    other = problem.another(rng)
    assert all(torch.equal(streams_state[name], now) for name, now in rng.state().items())
    assert other.states is problem.states
    assert not (other.observations == problem.observations).any()
    assert 0.02 < other.is_corrupted.double().mean() < 0.25
    assert not torch.equal(other.is_corrupted, problem.is_corrupted)
    noise = other.observations - problem.means
    assert abs(float(noise[~other.is_corrupted].std()) - 1) < 0.1
    repeat = problem.another(rng)
    assert torch.equal(repeat.observations, other.observations)


def test_missing_simulator_falls_back_with_warning():
    problem, model, rng = contaminate()
    fixed = replace(problem, redraw=None)
    with pytest.warns(
        IncompleteResultWarning,
        match="no other realisation .*; β .* on the filtered",
    ):
        result = run(select(), model, fixed, rng)
    assert result.scored_on == "the observations themselves"
    assert result.losses.isfinite().all()


@pytest.mark.parametrize("stop", [3, 6, 7, 15])
@pytest.mark.parametrize(
    "inference", [select(share=0.3), online(window=4)], ids=["select", "online"]
)
def test_resumed_run_makes_same_choice(tmp_path, inference, stop):
    problem, *_ = contaminate(n_steps=20)
    check_resumed(inference, component("model", "linear_gaussian_ssm"), problem, tmp_path, 20, stop)


def test_single_filter_continues_after_choice():
    problem, model, rng = contaminate(n_steps=20)
    inference = select(share=0.25)
    state = inference.init(model, problem, rng)
    for t, batch in problem.batches("observation", rng, 0, 20):
        state, _ = inference.step(state, batch, rng)
        assert (len(state.seen), len(state.elsewhere)) == ((4, 4) if t < 5 else (1, 0))
    assert inference.posterior(state).t == 20


def test_online_choice_looks_back_over_its_window():
    problem, model, rng = contaminate(replicates=3, n_steps=30)
    inference = online(window=8, first_beta=0.01)
    window = 8
    state = inference.init(model, problem, rng)
    state, _ = advance(inference, state, problem, rng, 0, 30)
    posterior = inference.posterior(state)
    every = [f.filtered.current_posterior() for f in state.filters]
    y = problem.observations
    for t in range(30):
        best = torch.full((3,), 1)
        if t >= window:
            past = slice(t - window, t)
            w = weights(y[:, past], "inverse_median", "k")
            losses = [predictive_loss(y[:, past], f.predicted[:, past], w) for f in every]
            best = smallest(torch.stack(losses))
        assert torch.equal(posterior.index[:, t], best)
        for name in ("mean", "variance", "lower", "upper", "predicted", "ess"):
            rows = torch.stack([vars(every[best[r]])[name][r, t] for r in range(3)])
            assert torch.equal(vars(posterior)[name][:, t], rows)


def test_missing_observation_counts_for_no_beta():
    problem, _, rng = contaminate(replicates=2, n_steps=30)
    gap = problem.observations.clone()
    gap[0, 10:14] = math.nan
    holed = replace(problem, observations=gap, redraw=lambda generator: gap)
    model = component("model", "linear_gaussian_ssm").build(holed, rng)
    for inference in (select(), online(window=5)):
        scores = holed.score(run(inference, model, holed, Streams(1)), rng)
        assert scores["missing"].tolist() == [4, 0]
        assert all(torch.isfinite(v).all() for v in scores.values())


@pytest.mark.parametrize("robust", ["beta_bootstrap_filter", "beta_auxiliary_filter"])
def test_beta_of_zero_is_ordinary_filter(robust):
    """For β → 0 the loss is log g to machine precision, so that the same particles are drawn and
    resampled.

    At an outlier log g = −5,000, with an error β (log g)² / 2."""
    problem, model, _ = contaminate(replicates=3, n_steps=40)
    keys = {"seed": 5, "particles": 200}
    exact = run_filter(robust.removeprefix("beta_"), problem, model, **keys)
    for beta in (0.0, 1e-18):
        result = run_filter(robust, problem, model, beta=beta, **keys)
        for name in ("mean", "lower", "upper", "predicted"):
            assert_close(vars(result)[name], vars(exact)[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "keys", "message"),
    [
        ("select_beta", {"betas": []}, "at least 1 item"),
        ("select_beta", {"betas": [-0.1, 0.1]}, "greater than or equal to 0"),
        ("select_beta", {"betas": [0.1, 0.1]}, r"betas: \[0.1, 0.1\] must increase"),
        (
            "select_beta",
            {"betas": [0.1, 1.5]},
            "betas: 1.5 is not allowed for beta_bootstrap_filter",
        ),
        (
            "select_beta",
            {"filter": "bootstrap_filter"},
            "filter: bootstrap_filter has no β to choose; use beta_bootstrap_filter",
        ),
        ("online_beta", {"first_beta": 0.3}, r"first_beta: 0\.3 is not one of betas"),
    ],
)
def test_invalid_grids_are_refused(name, keys, message):
    with pytest.raises(ValidationError, match=message):
        choice(name, **keys)


def test_choice_has_tables_and_figures(tmp_path):
    problem, model, rng = contaminate(n_steps=20)
    result = run(select(), model, problem, rng)
    (path,) = result.artefacts(tmp_path)
    table = pd.read_csv(path)
    assert table["beta"].tolist() == BETAS
    assert table["best_in"].sum() == 4
    assert table.loc[table["chosen"], "beta"].tolist() == [BETAS[result.chosen]]
    assert {"beta", "effective_size"} <= set(problem.draw(result, rng))
    (ax,) = result.figures()["beta"].axes
    assert [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == "--"] == [
        result.chosen
    ]
    live = run(online(window=5), model, problem, rng)
    assert pd.read_csv(live.artefacts(tmp_path)[0]).shape == (20, 5)
    assert len(live.figures()["beta"].axes) == 3


def test_hidden_truth_keeps_the_corrupted_realisation():
    problem, rng = load("tan", replicates=3, n_steps=20)
    problem = problem.attack(component("attacker", "student_t_outliers"), rng)
    shown = problem.without_truth()
    other = shown.another(rng)
    assert torch.equal(other.observations, problem.another(rng).observations)
    assert (other.states, other.means, other.clean) == (None, None, None)
    assert replace(problem, redraw=None).without_truth().another(rng) is None
