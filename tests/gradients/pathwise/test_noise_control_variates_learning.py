"""Control variates of the reparameterisation gradient while they learn: their mean, and the
remaining noise."""

import copy
from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, generator
from support.targets.pathwise_models import (
    OBJECTIVES,
    Location,
    flat,
    gaussian_models,
    gradient,
    rows,
    share_noise,
    train_estimator,
    z_score,
)

from components.gradients.pathwise.bound import row_gradients, whole_gradient
from components.gradients.pathwise.controlled import DrawResults, control_variates
from runner.execution.rng import Streams

COMPARED = [
    ("amortised_cv", {"order": 1}),
    ("amortised_cv", {"order": 2, "objective": "partial_gradients"}),
    ("amortised_cv", {"order": 2, "objective": "gradient_sum", "unit": "one"}),
    ("context_free_cv", {"order": 1}),
    ("context_free_cv", {"order": 2, "solver": "moving_average", "decay": 0.9}),
    ("context_free_cv", {"radial": 3, "solver": "moving_average", "decay": 0.9}),
    ("amortised_cv", {"radial": 2}),
]
LINEAR_IN_NOISE = [("amortised_cv", {"widths": []}), ("context_free_cv", {})]


@pytest.mark.parametrize(
    ("which", "number", "steps", "draws"),
    [
        *(
            (0, number, steps, 1)
            for number, steps in enumerate((400, 100, 400, 400, 400, 400, 200))
        ),
        (1, 0, 300, 1),
        (1, 4, 300, 1),
        *(
            pytest.param(which, number, 10_000, 10, marks=pytest.mark.slow)
            for which in range(2)
            for number in range(len(COMPARED))
        ),
    ],
)
def test_estimate_is_unbiased_during_learning(which, number, steps, draws):
    """The learning rate is large enough to reveal coefficients that depend on the same noise; slow:
    10⁵ draws."""
    name, changes = COMPARED[number]
    estimator = gradient(name, lr=0.3 if draws == 1 else 0.05, n_samples=draws, **changes)
    module, exact, batch = gaussian_models()[which]
    assert z_score(train_estimator(estimator, module, batch, steps)[2], exact) < 4.2


@pytest.mark.parametrize("name", ["amortised_cv", "context_free_cv"])
def test_coefficients_are_independent_of_noise(name):
    """Only first steps, in which Adam changes every coefficient by its full rate, so that a
    dependence on the same noise would be visible."""
    module = Location()
    batch = rows()
    rng = Streams(0)
    estimator = gradient(name, lr=1.0, **({"widths": []} if name == "amortised_cv" else {}))
    state = estimator.init(module, rng)
    draws = torch.stack(
        [flat(estimator.estimate(module, batch, rng, copy.deepcopy(state))[0]) for _ in range(300)]
    )
    assert z_score(draws, module.exact(batch.x)) < 4


def best_possible(module, batch, draws=4000):
    """Tr Cov of the gradient, and of the residual with the best linear coefficients of each row, by
    least squares."""
    g = generator(5)
    results = []
    noises = []
    for _ in range(draws):
        noise = module.draw_noise(batch, 1, g)
        results.append(flat(whole_gradient(module, batch, noise)[0]))
        noises.append(noise.flatten())
    G = torch.stack(results)
    W = torch.stack(noises)
    G = G - G.mean(0)
    residuals = G - W @ torch.linalg.lstsq(W, G).solution
    return float(G.var(0).sum()), float(residuals.var(0).sum())


def remaining_share(name, changes, objective, steps, lr=0.03):
    """Variance of the gradient in a, linear in the noise, over its own without a control variate:
    (N/B)² B e^{2s}, exact."""
    module = Location()
    batch = rows(scale=2.0)
    estimator = gradient(name, objective=objective, lr=lr, **changes)
    draws = train_estimator(estimator, module, batch, steps)[2]
    return float((draws[-100:, :2].var(0) / (4 * 5 * (2 * module.s).exp().detach())).max())


@pytest.mark.parametrize(("name", "changes"), LINEAR_IN_NOISE)
def test_order_one_removes_linear_noise(name, changes):
    assert remaining_share(name, changes, "squared_difference", 700) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("name", "changes"), LINEAR_IN_NOISE)
def test_order_one_removes_noise_with_every_objective(name, changes, objective):
    assert remaining_share(name, changes, objective, 3000, lr=0.005) < 0.15


@pytest.mark.slow
def test_order_two_removes_quadratic_noise():
    module = Location()
    batch = rows()
    estimator = gradient("amortised_cv", order=2, widths=[], objective="partial_gradients", lr=0.01)
    draws = train_estimator(estimator, module, batch, 2500)[2]
    assert (draws[-400:].var(0) / draws[:50].var(0)).max() < 0.05


def test_moving_average_finds_best_coefficient():
    module = Location()
    batch = rows(scale=2.0)
    for samples in (1, 2):
        estimator = gradient(
            "context_free_cv", solver="moving_average", decay=0.998, n_samples=samples
        )
        state, _, draws = train_estimator(estimator, module, batch, 1000)
        scale = module.s.exp().detach()
        slope = scale * (batch.x - module.a.detach()).mean(0)
        best = torch.cat([-scale.diag(), slope.diag()])
        # Cov[Ĝ, W] Cov[W]⁻¹ in units of N/B
        assert torch.allclose(state.control.c, best, atol=0.25)
        remainder = draws[-200:, :2].var(0).sum() / (4 * 5 / samples * scale.square().sum())
        assert float(remainder) < 0.15


def test_row_moments_have_same_mean_and_vary_less():
    """B⁻¹ Σ_b (ĝ_b − ḡ/B) w_bᵀ against (Ĝ − ḡ) Wᵀ/B by 2,000 noises, within their Monte-Carlo
    errors; order 2, S = 2."""
    module = Location(0.02)
    batch = rows(scale=2.0)
    by_row, by_sum = (
        gradient(
            "context_free_cv", solver="moving_average", order=2, n_samples=2, objective=objective
        )
        for objective in ("partial_gradients", "squared_difference")
    )
    rng = Streams(4)
    results = {"rows": [], "sum": []}
    mean = whole_gradient(module, batch, torch.zeros(1, 5, 2, dtype=F64))[0]
    mean = flat(mean) + 1.0  # not the mean of Ĝ, which may be unknown
    for _ in range(2000):
        noise = module.draw_noise(batch, 2, rng.noise)
        parts, gradients, _ = row_gradients(module, batch, noise)
        record = DrawResults(2.0, control_variates(noise, 2), False, flat(gradients), parts, parts)
        results["rows"].append(by_row.moments(record, mean))
        results["sum"].append(by_sum.moments(replace(record, rows=None), mean))
    rows_estimate, other = (torch.stack(values) for values in results.values())
    error = ((rows_estimate.var(0) + other.var(0)) / len(rows_estimate)).sqrt()
    assert ((rows_estimate.mean(0) - other.mean(0)) / error).abs().max() < 4.5
    assert rows_estimate.var(0).sum() < 0.5 * float(other.var(0).sum())


@pytest.mark.slow
def test_amortised_coefficient_beats_shared_one():
    module = Location()
    batch = rows()
    plain, least = best_possible(module, batch, 2000)
    keys = {"objective": "partial_gradients", "lr": 0.005}
    amortised = train_estimator(gradient("amortised_cv", widths=[], **keys), module, batch, 2000)[2]
    state_trained = train_estimator(gradient("context_free_cv", **keys), module, batch, 2000)[2]
    ratios = [float(draws[-300:].var(0).sum()) / plain for draws in (amortised, state_trained)]
    # residual with the best coefficients of each row
    assert ratios[0] == pytest.approx(least / plain, rel=0.2)
    assert ratios[0] < 0.9 * ratios[1]


def test_shared_noise_has_covariance_of_sum():
    module = share_noise(Location())
    batch = rows()
    train_estimator(gradient("amortised_cv"), module, batch, 1)
    draws = train_estimator(
        gradient("context_free_cv", solver="moving_average", decay=0.998), module, batch, 800
    )[2]
    assert float(draws[-300:, :2].var(0).sum() / (25 * (2 * module.s).exp().detach().sum())) < 0.1
