"""Control variates of the reparameterisation gradient: equations as printed, their mean, and what
they leave of the noise."""

from __future__ import annotations

import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.runs.configured import F64, component, double, normal
from support.small.unlabelled_problems import exact_elbo, ppca, real_rows
from torch import nn
from torch.autograd import grad
from torch.testing import assert_close

from components.contracts.problems import Rows
from components.errors import ConfigMismatchError
from components.gradients.pathwise import controlled
from components.gradients.pathwise.bound import row_gradients, whole_gradient
from components.gradients.pathwise.controlled import Told, control_variates, moment, spread
from runner.execution.rng import Streams

OBJECTIVES = ["squared_difference", "gradient_sum", "partial_gradients"]
COMPARED = [
    ("amortised_cv", {"order": 1}),
    ("amortised_cv", {"order": 2, "objective": "partial_gradients"}),
    ("amortised_cv", {"order": 2, "objective": "gradient_sum", "unit": "one"}),
    ("context_free_cv", {"order": 1}),
    ("context_free_cv", {"order": 2, "solver": "moving_average", "decay": 0.9}),
    ("context_free_cv", {"radial": 3, "solver": "moving_average", "decay": 0.9}),
    ("amortised_cv", {"radial": 2}),
]


class Location(nn.Module):
    """z_b = a + eˢ ε_b with one a, s [2] for all rows, ℓ_b = −½ |z_b − x_b|² + |z_b|⁴ · bend.

    Without bend the gradient in a is linear in the noise, and that in s quadratic."""

    def __init__(self, bend: float = 0.0):
        super().__init__()
        self.a = nn.Parameter(double([0.3, -0.8]))
        self.s = nn.Parameter(double([-0.5, 0.2]))
        self.bend, self.noise_dim, self.context_dim = bend, 2, 2

    def draw_noise(self, batch, n_samples, generator):
        return normal(generator, n_samples, batch.n_rows, 2)

    def elbo_rows(self, batch, noise):
        z = self.a + self.s.exp() * noise
        square = (z - batch.x).square().sum(-1)
        return -0.5 * square - self.bend * square * square

    def kl(self):
        return 0.5 * self.a.square().sum()

    def context(self, batch):
        return batch.x

    def row_gradients(self, x, noise):
        """Gradients ĝ_b [S, B, P] of each row, without bend."""
        scale = self.s.detach().exp()
        pull = x - self.a.detach() - scale * noise
        return torch.cat([pull, pull * scale * noise], -1)

    def exact(self, x):
        """Gradient of the bound of all rows, without bend."""
        return torch.cat([(x - self.a).sum(0) - self.a, -len(x) * (2 * self.s).exp()]).detach()


def normal(*shape, seed=0):
    return normal(torch.Generator().manual_seed(seed), *shape)


def rows(n=5, scale=1.0, seed=3):
    return Rows(normal(n, 2, seed=seed), scale)


def z_score(draws, exact=0.0):
    """Largest |mean − exact| in standard errors."""
    error = draws.std(0) / len(draws) ** 0.5
    return float(((draws.mean(0) - exact) / error).abs().max())


def share_noise(module):
    """Give all five rows the same noise."""
    module.draw_noise = lambda batch, n, generator: normal(generator, n, 1, 2).expand(-1, 5, -1)
    return module


def flat(gradients):
    return torch.cat([g.flatten() for g in gradients])


def gradient(name, **changes):
    return component(
        "gradient", name, **(({"widths": [8]} if name == "amortised_cv" else {}) | changes)
    )


def trained(estimator, module, batch, steps, seed=0):
    """The state after so many estimates, the streams, and the estimates."""
    rng = Streams(seed)
    state, found = estimator.init(module, rng), []
    for _ in range(steps):
        gradients, _, state = estimator.estimate(module, batch, rng, state)
        found.append(flat(gradients))
    return state, rng, torch.stack(found)


# ---- the equations
# ---------------------------------------------------------------------------------------------------
def test_moments_are_those_of_a_normal():
    """E ε^k by Gauss-Hermite quadrature of 20 points, which is exact for k < 40."""
    at, weights = (torch.tensor(v) for v in np.polynomial.hermite_e.hermegauss(20))
    for k in range(1, 9):
        assert moment(k) == pytest.approx(
            float((weights * at**k).sum()) / math.sqrt(2 * math.pi), abs=1e-9
        )


def test_powers_less_their_means():
    """(4.21): ε and ε² − 1, and (4.19) of K = 4; mean of the samples of a row."""
    noise = normal(3, 4, 2)
    w = control_variates(noise, 4)
    expected = [noise, noise**2 - 1, noise**3, noise**4 - 3]
    assert_close(w, torch.cat(expected, -1).sum(0) / 3)
    assert w.shape == (4, 8)


def test_radial_functions_have_mean_zero():
    """φ_j(ε) − E φ_j after the powers, by quadrature and as written."""
    at, weights = (torch.tensor(v) for v in np.polynomial.hermite_e.hermegauss(60))
    values = controlled.basis(at.unsqueeze(1), 1, 5)
    assert float((weights @ values).abs().max()) < 1e-12
    for j, mu in enumerate((-2, -1, 0, 1, 2)):
        gap = values[:, 1 + j] - (-0.5 * (at - mu) ** 2).exp()
        assert_close(gap, torch.full_like(gap, -math.exp(-mu * mu / 4) / 2**0.5))
    whole = normal(3, 4, 2)
    assert_close(control_variates(whole, 2, 0), control_variates(whole, 2))
    assert control_variates(whole, 2, 3).shape == (4, 10)


def test_radial_functions_take_what_polynomials_leave():
    noise = normal(4000, 1)
    slope = (3 * noise).tanh()  # of log cosh: no polynomial of the noise
    left = {}
    for radial in (0, 5):
        w = controlled.basis(noise, 2, radial)
        left[radial] = float((slope - w @ torch.linalg.lstsq(w, slope).solution).var())
    assert left[5] < 0.2 * left[0]


def test_their_known_covariance_is_that_of_draws():
    noise = normal(50_000, 1)
    w = controlled.basis(noise, 2, 3)
    estimator = gradient("context_free_cv", order=2, radial=3)
    whitened = estimator.whiten(Told(1.0, w, False, w[0], None, w))
    known = torch.linalg.lstsq(whitened, w).solution
    assert torch.allclose(known, w.T @ w / len(w), rtol=0.05, atol=0.06)


@pytest.mark.parametrize("excess", [0.0, 0.2])
def test_radial_functions_that_keep_their_mean_are_found(monkeypatch, excess):
    right = controlled.basis
    monkeypatch.setattr(controlled, "basis", lambda *keys: right(*keys) + excess)
    (module, exact, batch), rng = gaussian_models()[0], Streams(0)
    estimator = gradient("context_free_cv", radial=3, lr=1e-12)
    state = estimator.init(module, rng)
    torch.nn.init.ones_(state.coefficient.c)
    draws = torch.stack(
        [flat(estimator.estimate(module, batch, rng, state)[0]) for _ in range(300)]
    )
    assert (z_score(draws, exact) > 6) == (excess > 0)


@pytest.mark.parametrize(("n_samples", "centred"), [(1, False), (3, False), (2, True)])
def test_the_estimate_is_the_one_printed(n_samples, centred):
    """(4.5) and (4.7) by loops over rows and parameters, with N/B and the KL that rows share,
    before any update."""
    module, batch = Location(0.05), rows(scale=3.0)
    for unit, factor in (("scale", 3.0), ("one", 1.0)):
        estimator = gradient(
            "amortised_cv", order=2, n_samples=n_samples, unit=unit, centred=centred
        )
        state = estimator.init(module, Streams(0))
        noise = module.draw_noise(batch, n_samples, Streams(0).noise)
        plain, _ = whole_gradient(module, batch, noise)
        # [B, P, K·D], and d_b, which corrects nothing
        r = state.network(batch.x).detach().reshape(5, 4, 4 + centred)
        expected = flat(plain).clone()
        for b in range(5):
            for p in range(4):
                for s in range(n_samples):
                    e = noise[s, b]
                    expected[p] -= (
                        factor / n_samples * (r[b, p, :2] @ e + r[b, p, 2:4] @ (e**2 - 1))
                    )
        found, terms, _ = estimator.estimate(module, batch, Streams(0), state)
        assert_close(flat(found), expected)
        assert set(terms) == {"elbo", "kl"}


def test_objectives_as_printed():
    """(4.10), (4.14), (4.15), term by term."""
    g = torch.Generator().manual_seed(0)
    G, each, H = (normal(g, *shape) for shape in ((3,), (4, 3), (4, 3)))
    partial = sum(H[b, p] ** 2 - 2 * each[b, p] * H[b, p] for b in range(4) for p in range(3))
    by_sum = sum(H[b, p] ** 2 - 2 * G[p] * H[b, p] for b in range(4) for p in range(3))
    squared = sum((G[p] - sum(H[b, p] for b in range(4))) ** 2 for p in range(3))
    for name, expected in zip(OBJECTIVES, (squared, by_sum, partial), strict=True):
        assert spread(name, G, each, H) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_is_learnt_of_a_mean_frees_the_slope_of_its_noise(objective):
    """Ṽ of h_b = d_b + c_bᵀ w in print, its slope in c at d = E ĝ_b: the same mean as at d = 0, of
    less variance."""
    module, batch = Location(), rows()
    a, scale = module.a.detach(), module.s.detach().exp()
    noise = module.draw_noise(batch, 600, torch.Generator().manual_seed(2))
    each = module.row_gradients(batch.x, noise)
    level = torch.cat([batch.x - a, -scale.square().expand(5, -1)], -1)  # E ĝ_b
    level = level if objective != "gradient_sum" else level.sum(0).expand(5, -1)
    slopes = []
    for d in (torch.zeros(5, 4, dtype=F64), level):
        c = torch.zeros(5, 4, 2, dtype=F64, requires_grad=True)
        found = []
        for e, g in zip(noise, each, strict=True):
            fitted = d + torch.einsum("bpk,bk->bp", c, control_variates(e[None], 1))
            found.append(grad(spread(objective, g.sum(0), g, fitted), c)[0].flatten())
        slopes.append(torch.stack(found))
    plain, centred = slopes
    gap = plain - centred
    assert float((gap.mean(0) / (gap.std(0) / 600**0.5 + 1e-9)).abs().max()) < 4
    assert float(centred.var(0).sum()) < 0.8 * float(plain.var(0).sum())


def test_centred_coefficients_are_learnt_of_what_is_left():
    """The network's slope is that of Ṽ(d_b + c_bᵀ w), by hand, and moves the outputs of d as
    well."""
    module, batch = Location(0.05), rows(scale=3.0)
    estimator = gradient("amortised_cv", objective="partial_gradients", centred=True, lr=1e-3)
    state = estimator.init(module, Streams(0))
    noise = module.draw_noise(batch, 1, Streams(0).noise)
    each, _, _ = row_gradients(module, batch, noise)
    out = state.network(batch.x).reshape(5, 4, 3)
    h = 3.0 * (out[..., 2] + torch.einsum("bpk,bk->bp", out[..., :2], noise[0]))
    expected = grad((h.square() - 2 * each * h).sum(), list(state.network.parameters()))
    estimator.estimate(module, batch, Streams(0), state)
    for p, g in zip(state.network.parameters(), expected, strict=True):
        assert_close(p.grad, g)


def test_the_three_objectives_are_equal_in_mean_but_for_the_second_moment():
    """E Ṽ^SD − E‖Ĝ‖² = E Ṽ^GS = E Ṽ: gradients of rows by hand, which vectorised passes are
    compared with below."""
    module, batch, c = (
        Location(),
        rows(),
        torch.randn(5, 4, 4, generator=torch.Generator().manual_seed(1)).double(),
    )
    noise = module.draw_noise(batch, 4000, torch.Generator().manual_seed(2))  # [S, B, D]
    each = module.row_gradients(batch.x, noise)
    differences = []
    for e, g in zip(noise, each, strict=True):
        G, H = g.sum(0), torch.einsum("bpk,bk->bp", c, control_variates(e[None], 2))
        squared, by_sum, partial = (spread(name, G, g, H) for name in OBJECTIVES)
        differences.append(torch.stack([squared - G.square().sum() - partial, by_sum - partial]))
    assert z_score(torch.stack(differences)) < 3.5


@pytest.mark.parametrize(
    "make", [lambda: (Location(0.1), rows(scale=2.0)), lambda: (ppca(real_rows(n=6), False), None)]
)
def test_gradients_of_rows_are_those_of_batches_of_one(make):
    module, batch = make()
    batch = real_rows(n=6).train if batch is None else batch
    noise = module.draw_noise(batch, 2, Streams(0).noise)
    each, sums, terms = row_gradients(module, batch, noise)
    whole, told = whole_gradient(module, batch, noise)
    assert_close(flat(sums), flat(whole))
    assert_close(terms["elbo"], told["elbo"])
    for b in range(batch.n_rows):
        value = batch.scale * module.elbo_rows(batch, noise).mean(0)[b]
        assert_close(each[b], flat(grad(value, list(module.parameters()))))


# ---- mean and variance
# -----------------------------------------------------------------------------------------------
def largest_z(name, changes, module, exact, batch, steps):
    """Largest |mean − exact| in standard errors while the coefficients are learnt (martingale
    differences)."""
    estimator = gradient(name, **changes)
    _, _, draws = trained(estimator, module, batch, steps)
    return z_score(draws, exact)


def gaussian_models():
    module, batch = Location(), rows()
    problem = real_rows(n=12)
    guided = ppca(problem, exact_guide=False)
    guided_exact = flat(grad(exact_elbo(guided, problem.train.x), list(guided.parameters())))
    return [(module, module.exact(batch.x), batch), (guided, guided_exact, problem.train)]


@pytest.mark.parametrize(
    ("which", "number", "steps"),
    [
        (0, 0, 400),
        (0, 1, 100),
        (0, 2, 400),
        (0, 3, 400),
        (0, 4, 400),
        (0, 5, 400),
        (0, 6, 200),
        (1, 0, 300),
        (1, 4, 300),
    ],
)
def test_unbiased_while_it_learns(which, number, steps):
    name, changes = COMPARED[number]
    assert component("gradient", name).unbiased
    # The first steps, at a rate at which a coefficient that knew its own noise would show.
    assert largest_z(name, changes | {"lr": 0.3}, *gaussian_models()[which], steps) < 4.2


@pytest.mark.parametrize("name", ["amortised_cv", "context_free_cv"])
def test_no_coefficient_knows_the_noise_that_it_corrects(name):
    """Always the first step, where Adam moves every coefficient by its whole rate: what it learns
    from itself would show."""
    module, batch, rng = Location(), rows(), Streams(0)
    estimator = gradient(name, lr=1.0, **({"widths": []} if name == "amortised_cv" else {}))
    state = estimator.init(module, rng)
    draws = torch.stack(
        [flat(estimator.estimate(module, batch, rng, copy.deepcopy(state))[0]) for _ in range(300)]
    )
    assert z_score(draws, module.exact(batch.x)) < 4


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes"), COMPARED)
@pytest.mark.parametrize("which", [0, 1])
def test_unbiased_in_many_draws(which, name, changes):
    """10⁵ draws of the noise, ten to a step."""
    assert (
        largest_z(name, changes | {"lr": 0.05, "n_samples": 10}, *gaussian_models()[which], 10_000)
        < 4.2
    )


def best_possible(module, batch, draws=4000):
    """Tr Cov of the gradient, and of what the best linear coefficients of each row leave, by least
    squares."""
    g, found, noises = torch.Generator().manual_seed(5), [], []
    for _ in range(draws):
        noise = module.draw_noise(batch, 1, g)
        found.append(flat(whole_gradient(module, batch, noise)[0]))
        noises.append(noise.flatten())
    G, W = torch.stack(found), torch.stack(noises)
    G = G - G.mean(0)
    left = G - W @ torch.linalg.lstsq(W, G).solution
    return float(G.var(0).sum()), float(left.var(0).sum())


LINEAR_IN_NOISE = [("amortised_cv", {"widths": []}), ("context_free_cv", {})]


def left_of_linear(name, changes, objective, steps, lr=0.03):
    """Variance of the gradient in a, linear in the noise, over its own without a control variate:
    (N/B)² B e^{2s}, exact."""
    module, batch = Location(), rows(scale=2.0)
    _, _, draws = trained(
        gradient(name, objective=objective, lr=lr, **changes), module, batch, steps
    )
    return float((draws[-100:, :2].var(0) / (4 * 5 * (2 * module.s).exp().detach())).max())


@pytest.mark.parametrize(("name", "changes"), LINEAR_IN_NOISE)
def test_order_one_removes_the_noise_where_the_gradient_is_linear_in_it(name, changes):
    assert left_of_linear(name, changes, "squared_difference", 700) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("name", "changes"), LINEAR_IN_NOISE)
def test_order_one_removes_it_by_every_objective(name, changes, objective):
    assert left_of_linear(name, changes, objective, 3000, lr=0.005) < 0.15


@pytest.mark.slow
def test_order_two_removes_what_is_quadratic():
    module, batch = Location(), rows()
    estimator = gradient("amortised_cv", order=2, widths=[], objective="partial_gradients", lr=0.01)
    draws = trained(estimator, module, batch, 2500)[2]
    assert float((draws[-400:].var(0) / draws[:50].var(0)).max()) < 0.05


def test_the_moving_average_finds_the_best_coefficient():
    module, batch = Location(), rows(scale=2.0)
    for samples in (1, 2):
        estimator = gradient(
            "context_free_cv", solver="moving_average", decay=0.998, n_samples=samples
        )
        state, _, draws = trained(estimator, module, batch, 1000)
        best = torch.cat(
            [-module.s.exp().diag(), (module.s.exp() * (batch.x - module.a).mean(0)).diag()]
        ).detach()
        # Cov[Ĝ, W] Cov[W]⁻¹ in units of N/B
        assert torch.allclose(state.coefficient.c, best, atol=0.25)
        assert (
            float(
                draws[-200:, :2].var(0).sum()
                / (4 * 5 / samples * (2 * module.s).exp().detach().sum())
            )
            < 0.15
        )


def test_moments_row_by_row_have_the_same_mean_and_vary_less():
    """B⁻¹ Σ_b (ĝ_b − ḡ/B) w_bᵀ against (Ĝ − ḡ) Wᵀ/B by 2,000 noises, within their Monte-Carlo
    errors; order 2, S = 2."""
    module, batch = Location(0.02), rows(scale=2.0)
    by_row, by_sum = (gradient("context_free_cv", solver="moving_average", order=2, n_samples=2, objective=objective)
                      for objective in ("partial_gradients", "squared_difference"))  # fmt: skip
    rng, found = Streams(4), {"rows": [], "sum": []}
    mean = whole_gradient(module, batch, torch.zeros(1, 5, 2, dtype=F64))[0]
    mean = flat(mean) + 1.0  # not the mean of Ĝ, which need not be known
    for _ in range(2000):
        noise = module.draw_noise(batch, 2, rng.noise)
        parts, gradients, _ = row_gradients(module, batch, noise)
        told = {
            "unit": 2.0,
            "w": control_variates(noise, 2),
            "shared": False,
            "gradient": flat(gradients),
        }
        found["rows"].append(by_row.moments(Told(**told, rows=parts, fitted=parts), mean))
        found["sum"].append(by_sum.moments(Told(**told, rows=None, fitted=parts), mean))
    one, other = (torch.stack(values) for values in found.values())
    error = ((one.var(0) + other.var(0)) / len(one)).sqrt()
    assert float(((one.mean(0) - other.mean(0)) / error).abs().max()) < 4.5
    assert float(one.var(0).sum()) < 0.5 * float(other.var(0).sum())


@pytest.mark.slow
def test_an_amortised_coefficient_beats_one_for_all_rows():
    module, batch = Location(), rows()
    plain, least = best_possible(module, batch, 2000)
    keys = {"objective": "partial_gradients", "lr": 0.005}
    amortised = trained(gradient("amortised_cv", widths=[], **keys), module, batch, 2000)[2]
    one = trained(gradient("context_free_cv", **keys), module, batch, 2000)[2]
    ratios = [float(draws[-300:].var(0).sum()) / plain for draws in (amortised, one)]
    # what the best coefficients of each row leave
    assert ratios[0] == pytest.approx(least / plain, rel=0.2)
    assert ratios[0] < 0.9 * ratios[1]


# ---- refused
# -------------------------------------------------------------------------------------------------
def bare_module():
    """Pathwise, but not a module with parameters that can be exchanged."""
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
            "needs rows to differentiate one by one",
        ),
    ],
)
def test_a_misfit_is_refused(make, name, changes, message):
    with pytest.raises(ConfigMismatchError, match=message):
        trained(gradient(name, **changes), make(), rows(), 1)


def test_a_misfit_is_refused_before_a_step():
    module = Location()
    with pytest.raises(ConfigMismatchError, match=r"lower gradient.widths"):
        gradient("amortised_cv", widths=[2**26]).init(module, Streams(0))
    module.context_dim = 0
    with pytest.raises(ConfigMismatchError, match="choose gradient=context_free_cv"):
        gradient("amortised_cv").init(module, Streams(0))


def test_shared_noise_has_the_covariance_of_its_sum():
    module, batch = share_noise(Location()), rows()
    trained(gradient("amortised_cv"), module, batch, 1)
    draws = trained(
        gradient("context_free_cv", solver="moving_average", decay=0.998), module, batch, 800
    )[2]
    assert float(draws[-300:, :2].var(0).sum() / (25 * (2 * module.s).exp().detach().sum())) < 0.1
