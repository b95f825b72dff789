"""Control variates of the reparameterisation gradient: published equations, mean, and remaining
noise."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.runs.configured import F64, draw_normal, generator, normal
from support.small.unlabelled_problems import ppca, real_rows
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
from torch.autograd import grad
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.gradients.pathwise import controlled
from components.gradients.pathwise.bound import row_gradients, whole_gradient
from components.gradients.pathwise.controlled import DrawResults, control_variates, moment, spread
from runner.execution.rng import Streams


def test_moments_match_standard_normal():
    """E ε^k by Gauss-Hermite quadrature of 20 points, which is exact for k < 40."""
    nodes_1d, weights = np.polynomial.hermite_e.hermegauss(20)
    for k in range(1, 9):
        assert moment(k) == pytest.approx(weights @ nodes_1d**k / math.sqrt(2 * math.pi), abs=1e-9)


def test_powers_are_centred():
    """(4.21): ε and ε² − 1, and (4.19) of K = 4; mean of the samples of a row."""
    noise = draw_normal(3, 4, 2)
    w = control_variates(noise, 4)
    expected = [noise, noise**2 - 1, noise**3, noise**4 - 3]
    assert_close(w, torch.cat(expected, -1).sum(0) / 3)
    assert w.shape == (4, 8)


def test_radial_functions_have_mean_zero():
    """φ_j(ε) − E φ_j after the powers, by quadrature and by the formula."""
    nodes_1d, weights = (torch.tensor(v) for v in np.polynomial.hermite_e.hermegauss(60))
    values = controlled.basis(nodes_1d.unsqueeze(1), 1, 5)
    assert (weights @ values).abs().max() < 1e-12
    for j, mu in enumerate((-2, -1, 0, 1, 2)):
        gap = values[:, 1 + j] - (-0.5 * (nodes_1d - mu) ** 2).exp()
        assert_close(gap, torch.full_like(gap, -math.exp(-mu * mu / 4) / 2**0.5))
    whole = draw_normal(3, 4, 2)
    assert_close(control_variates(whole, 2, 0), control_variates(whole, 2))
    assert control_variates(whole, 2, 3).shape == (4, 10)


def test_known_covariance_matches_draws():
    noise = draw_normal(50_000, 1)
    w = controlled.basis(noise, 2, 3)
    estimator = gradient("context_free_cv", order=2, radial=3)
    whitened = estimator.whiten(DrawResults(1.0, w, False, w[0], None, w))
    coefficients = torch.linalg.lstsq(whitened, w).solution
    assert torch.allclose(coefficients, w.T @ w / len(w), rtol=0.05, atol=0.06)


@pytest.mark.parametrize("excess", [0.0, 0.2])
def test_uncentred_radial_functions_are_detected(monkeypatch, excess):
    right = controlled.basis
    monkeypatch.setattr(controlled, "basis", lambda *keys: right(*keys) + excess)
    module, exact, batch = gaussian_models()[0]
    rng = Streams(0)
    estimator = gradient("context_free_cv", radial=3, lr=1e-12)
    state = estimator.init(module, rng)
    torch.nn.init.ones_(state.control.c)
    draws = torch.stack(
        [flat(estimator.estimate(module, batch, rng, state)[0]) for _ in range(300)]
    )
    assert (z_score(draws, exact) > 6) == (excess > 0)


@pytest.mark.parametrize(("n_samples", "centred"), [(1, False), (3, False), (2, True)])
def test_estimate_matches_published_equation(n_samples, centred):
    """(4.5) and (4.7), with N/B and the KL that rows share, before any update."""
    module = Location(0.05)
    batch = rows(scale=3.0)
    for unit, factor in (("scale", 3.0), ("one", 1.0)):
        estimator = gradient(
            "amortised_cv", order=2, n_samples=n_samples, unit=unit, centred=centred
        )
        state = estimator.init(module, Streams(0))
        noise = module.draw_noise(batch, n_samples, Streams(0).noise)
        plain, _ = whole_gradient(module, batch, noise)
        # [B, P, K·D], and d_b, which has no effect on the estimate
        r = state.control(batch.x).detach().reshape(5, 4, 4 + centred)[..., :4]
        w = torch.cat([noise, noise**2 - 1], -1)
        expected = flat(plain) - factor / n_samples * torch.einsum("bpk,sbk->p", r, w)
        estimate, terms, _ = estimator.estimate(module, batch, Streams(0), state)
        assert_close(flat(estimate), expected)
        assert set(terms) == {"elbo", "kl"}


def test_objectives_match_published_equations():
    """(4.10), (4.14), (4.15)."""
    g = generator(0)
    G = normal(g, 3)
    each = normal(g, 4, 3)
    H = normal(g, 4, 3)
    expected = {
        "squared_difference": (G - H.sum(0)).square().sum(),
        "gradient_sum": (H**2 - 2 * G * H).sum(),
        "partial_gradients": (H**2 - 2 * each * H).sum(),
    }
    assert_close({name: spread(name, G, each, H) for name in OBJECTIVES}, expected)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_learnt_mean_reduces_gradient_noise(objective):
    """Ṽ of h_b = d_b + c_bᵀ w as printed: its derivative in c at d = E ĝ_b has the same mean as at
    d = 0, and less variance."""
    module = Location()
    batch = rows()
    a = module.a.detach()
    scale = module.s.detach().exp()
    noise = module.draw_noise(batch, 600, generator(2))
    each = module.row_gradients(batch.x, noise)
    level = torch.cat([batch.x - a, -scale.square().expand(5, -1)], -1)  # E ĝ_b
    level = level if objective != "gradient_sum" else level.sum(0).expand(5, -1)
    slopes = []
    for d in (torch.zeros(5, 4, dtype=F64), level):
        c = torch.zeros(5, 4, 2, dtype=F64, requires_grad=True)
        results = []
        for e, g in zip(noise, each, strict=True):
            fitted = d + torch.einsum("bpk,bk->bp", c, control_variates(e[None], 1))
            results.append(grad(spread(objective, g.sum(0), g, fitted), c)[0].flatten())
        slopes.append(torch.stack(results))
    plain, centred = slopes
    gap = plain - centred
    assert (gap.mean(0) / (gap.std(0) / 600**0.5 + 1e-9)).abs().max() < 4
    assert centred.var(0).sum() < 0.8 * float(plain.var(0).sum())


def test_centred_coefficients_learn_from_residual():
    """The network's gradient equals the gradient of Ṽ(d_b + c_bᵀ w) and also changes the outputs of
    d."""
    module = Location(0.05)
    batch = rows(scale=3.0)
    estimator = gradient("amortised_cv", objective="partial_gradients", centred=True, lr=1e-3)
    state = estimator.init(module, Streams(0))
    noise = module.draw_noise(batch, 1, Streams(0).noise)
    each, _, _ = row_gradients(module, batch, noise)
    out = state.control(batch.x).reshape(5, 4, 3)
    h = 3.0 * (out[..., 2] + torch.einsum("bpk,bk->bp", out[..., :2], noise[0]))
    expected = grad((h.square() - 2 * each * h).sum(), list(state.control.parameters()))
    estimator.estimate(module, batch, Streams(0), state)
    assert_close(tuple(p.grad for p in state.control.parameters()), expected)


def test_objectives_have_equal_mean_up_to_second_moment():
    """E Ṽ^SD − E‖Ĝ‖² = E Ṽ^GS = E Ṽ, with literal row gradients, the reference for the vectorised
    passes below."""
    module = Location()
    batch = rows()
    c = draw_normal(5, 4, 4, seed=1)
    noise = module.draw_noise(batch, 4000, generator(2))  # [S, B, D]
    each = module.row_gradients(batch.x, noise)
    differences = []
    for e, g in zip(noise, each, strict=True):
        G = g.sum(0)
        H = torch.einsum("bpk,bk->bp", c, control_variates(e[None], 2))
        squared, by_sum, partial = (spread(name, G, g, H) for name in OBJECTIVES)
        differences.append(torch.stack([squared - G.square().sum() - partial, by_sum - partial]))
    assert z_score(torch.stack(differences)) < 3.5


@pytest.mark.parametrize(
    "make", [lambda: (Location(0.1), rows(scale=2.0)), lambda: (ppca(real_rows(n=6), False), None)]
)
def test_row_gradients_match_single_row_batches(make):
    module, batch = make()
    batch = real_rows(n=6).train if batch is None else batch
    noise = module.draw_noise(batch, 2, Streams(0).noise)
    each, sums, terms = row_gradients(module, batch, noise)
    whole, messages = whole_gradient(module, batch, noise)
    assert_close((flat(sums), terms["elbo"]), (flat(whole), messages["elbo"]))
    for b in range(batch.n_rows):
        value = batch.scale * module.elbo_rows(batch, noise).mean(0)[b]
        assert_close(each[b], flat(grad(value, list(module.parameters()))))


def bare_module():
    """A pathwise object, but not a module with replaceable parameters."""
    module = Location()
    names = ("parameters", "draw_noise", "elbo_rows", "kl", "noise_dim")
    return SimpleNamespace(**{name: getattr(module, name) for name in names})


SHARED_NOISE = r"set inference.noise=rows, or objective=squared_difference"


@pytest.mark.parametrize(
    ("make", "name", "changes", "message"),
    [
        *(
            (lambda: share_noise(Location()), "amortised_cv", {"objective": name}, SHARED_NOISE)
            for name in ("gradient_sum", "partial_gradients")
        ),
        (
            bare_module,
            "context_free_cv",
            {"objective": "partial_gradients"},
            "requires rows that can be differentiated",
        ),
    ],
)
def test_incompatible_module_is_refused(make, name, changes, message):
    with pytest.raises(ConfigMismatchError, match=message):
        train_estimator(gradient(name, **changes), make(), rows(), 1)


def test_incompatible_module_is_refused_at_init():
    module = Location()
    with pytest.raises(ConfigMismatchError, match=r"lower gradient.widths"):
        gradient("amortised_cv", widths=[2**26]).init(module, Streams(0))
    module.context_dim = 0
    with pytest.raises(ConfigMismatchError, match="use gradient=context_free_cv"):
        gradient("amortised_cv").init(module, Streams(0))
