"""Maximum likelihood of structural series, compared with statsmodels and with other parameters."""

from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from support.runs.configured import component, draw_normal
from support.series.structural_series import AHEAD, F64, block, model, problem, smooth_states
from support.small.small_problems import train
from torch.testing import assert_close

from components.contracts.costs.counts import Costs, counting
from components.contracts.roles import FinishedRun
from components.errors import ConfigMismatchError
from components.evaluation.run_checks import interval_checks
from components.maths.time_varying import filter_system
from components.series.structural.compiled.likelihood import log_density
from components.series.structural.structural_mle import Coordinates
from components.series.structural.sweep import compile_system
from runner.execution.rng import Streams

STEPS = 40


def fit(built, data, steps=STEPS, **keys):
    inference = component("inference", "structural_mle", **({"restarts": 1, "draws": 400} | keys))
    state = inference.init(built, data, Streams(0))
    for _ in range(steps):
        state, info = inference.step(state, data.series, Streams(0))
    return inference.posterior(state), info


def build_search(*blocks, **keys):
    """A model, its design, and the coordinates of a random point near a search's start."""
    data = problem(**keys)
    built = model(*blocks, of=data)
    design = built.design(data.series)
    coordinates = Coordinates.of(built.structure, design)
    z = coordinates.start(design, torch.zeros(len(built.structure.scales), dtype=F64))
    return built, design, coordinates, z + 0.3 * draw_normal(len(z))


def test_likelihood_is_at_least_that_of_statsmodels():
    """The same maximum, with the same law of the first state, missing times and regressors."""
    sm = pytest.importorskip(
        "statsmodels.tsa.statespace.structural", reason="statsmodels is not installed"
    )
    data = problem(times=40, missing=(5, 6))
    built = model("local_level", block("regression", expected_size=None), of=data)
    posterior, info = fit(built, data)
    design = built.design(data.series)
    peer = sm.UnobservedComponents(design.y.numpy(), "local level", exog=design.X.numpy())
    peer.ssm.loglikelihood_burn = 0
    peer.ssm.initialize_known(
        built.structure.mean.numpy(), torch.diag(built.structure.sd.square()).numpy()
    )

    best = peer.fit(disp=False, maxiter=500, method="lbfgs", pgtol=1e-9)

    assert float(info["log_likelihood"]) == pytest.approx(best.llf, abs=1e-4)
    assert info["converged"] == 1.0
    theta = dict(zip(posterior.names, posterior.draws[0, 0].tolist(), strict=True))
    expected = dict(zip(best.model.param_names, best.params, strict=True))
    assert theta["a"] == pytest.approx(expected["beta.x1"], rel=1e-3, abs=1e-4)
    assert theta["level_sd"] ** 2 == pytest.approx(expected["sigma2.level"], rel=5e-3)


def test_statsmodels_peer_equals_ours_with_wide_initial_states():
    """The same variances and forecasts; the package's own calls are counted."""
    sm = pytest.importorskip("statsmodels.tsa.statespace.structural").UnobservedComponents
    data = problem(times=120, missing=(5, 6))
    ours, _ = fit(model(block("local_level", initial_sd=1e3), of=data), data)
    peer = component("inference", "statsmodels_uc", level="local level", seasonal=None)
    costs = Costs()
    with (
        patch.object(sm, "loglike", autospec=True, side_effect=sm.loglike) as calls,
        counting(costs),
    ):
        posterior = peer.posterior(train(peer, None, data, 2)[0])
    n = calls.call_count
    assert (costs.densities, costs.forwards) == (n, 120 * n)
    assert posterior.theta == pytest.approx(ours.draws[0, 0].square().tolist(), rel=1e-3)
    laws = [law.forecast(data.series, AHEAD, Streams(0).noise) for law in (posterior, ours)]
    assert_close(*[torch.cat([law.mu, law.v]) for law in laws], rtol=1e-4, atol=0)


def test_unconverged_search_fails_a_check():
    data = problem(times=40)
    inference = component("inference", "structural_mle", restarts=1)
    state = inference.init(model("local_level", of=data), data, Streams(0))
    verdicts = []
    for _ in range(STEPS):
        state, info = inference.step(state, data.series, Streams(0))
        (check,) = inference.checks(FinishedRun(data, None, inference, state, {}, [], Streams(0)))
        assert check.passed == (info["converged"] == 1.0)
        verdicts.append(check.passed)
    assert (verdicts[0], verdicts[-1]) == (False, True)


def test_coordinates_keep_parameters_within_limits():
    built, _, coordinates, z = build_search(
        "semilocal_trend",
        block("autoregressive", lags=3),
        block("nerlove_arrow", inclusion={"web": 0.0}),
    )

    theta = dict(zip(built.structure.names, coordinates.theta(10 * z)[0].tolist(), strict=True))

    assert all(
        theta[name] > 0
        for name in ("observation_sd", "level_sd", "slope_sd", "ar_sd", "goodwill_sd")
    )
    assert -1 < theta["slope_phi"] < 1
    assert 0 < theta["goodwill_kept"] < 1
    assert theta["web"] == 0.0
    assert theta["tv"] != 0.0


@pytest.mark.parametrize(
    "blocks",
    [
        ("local_linear_trend", block("seasonal", period=5)),
        ("semilocal_trend", block("autoregressive", lags=3), "nerlove_arrow"),
    ],
)
def test_compiled_likelihood_and_scores_equal_the_differentiated_filter(blocks):
    built, design, coordinates, z = build_search(*blocks, missing=(0, 5, 6, 23))
    z.requires_grad_()
    moving = built.system(coordinates.theta(z), design)

    value, linear = log_density(design.y, compile_system(built.structure, design), moving)
    expected = filter_system(moving, design.y, design.seen.tolist()).log_density.squeeze(0)

    assert value == pytest.approx(expected.item(), rel=1e-12)
    scores, exact = (torch.autograd.grad(x, z, retain_graph=True)[0] for x in (linear, expected))
    assert torch.allclose(scores, exact, rtol=1e-9, atol=1e-9)
    assert exact.abs().min() > 1e-6  # no parameter is without effect


def test_components_are_drawn_at_the_best_parameters():
    """The mean of the drawn level is the smoothed one, within 4.5 standard errors, and the
    components sum to the forecast."""
    data = problem(missing=(5,))
    built = model("local_level", block("regression", expected_size=None), of=data)

    posterior, _ = fit(built, data, steps=10)

    theta = posterior.draws[0]
    design = built.design(data.series)
    mean, covariance = smooth_states(built.system(theta, design), design)
    drawn = posterior.contributions[0, :, :, 0].mean(0)
    assert ((drawn - mean[:, 0]) / (covariance[:, 0, 0] / 400).sqrt()).abs().max() < 4.5
    assert torch.allclose(posterior.contributions[0, 0, :, 1], (design.X * theta[0, -2:]).sum(1))
    effects = sum(posterior.components[1].columns.values())
    assert torch.allclose(posterior.contributions[0, 0, :, 1], effects)
    scores = data.score(posterior, Streams(0))
    assert {"mape", "coverage90", "one_ahead/mape", "inclusion/a", "cumulative"} <= set(scores)
    figures = set(data.draw(posterior, Streams(0)))
    assert {"components", "residuals", "forecast"} <= figures
    assert "inclusion" not in figures  # all columns are included
    assert data.forecast(posterior, Streams(0)).mu.shape == (1, AHEAD, 1)


def test_intervention_effect_is_the_difference_to_the_forecast():
    """A lift of 5 at each later time is recovered for any baseline."""
    data = replace(problem(times=40, seed=5), intervention=True)
    built = model("local_level", block("regression", expected_size=None), of=data)
    posterior, _ = fit(built, data, steps=12)
    original_scores = data.score(posterior, Streams(0))
    lifted = replace(data, future=data.future + 5.0)

    scores = lifted.score(posterior, Streams(0))

    assert scores["effect/cumulative"] - original_scores["effect/cumulative"] == pytest.approx(
        5.0 * AHEAD
    )
    assert scores["effect/average_upper95"] - original_scores[
        "effect/average_upper95"
    ] == pytest.approx(5.0)
    assert "mape" not in scores
    empty = {"effect/cumulative_upper95": scores["effect/cumulative_lower95"]}
    assert [check.passed for check in interval_checks(scores)] == [True]
    assert [check.passed for check in interval_checks(scores | empty)] == [False]
    assert "effect" in lifted.draw(posterior, Streams(0))


def test_heavy_tails_are_refused():
    data = problem()
    with pytest.raises(ConfigMismatchError, match=r"set model\.errors=gaussian"):
        fit(model("local_level", of=data, errors="student_t"), data)
