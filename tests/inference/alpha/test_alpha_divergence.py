"""D_α and the Gaussians that minimise it: equations 17 to 20, closed-form limits, stationarity."""

import math

import pytest
import torch
from support.runs.configured import F64, component, double, load
from torch.distributions import Normal, kl_divergence

from components.maths.divergences.alpha_divergence import (
    Quadrature,
    divergence,
    log_mass,
    log_normal,
    minimise,
    shape_objective,
    starts,
)

W, M, S = (double(v) for v in ([0.8, 0.2], [0.0, 3.0], [0.8, 0.8]))
ALPHAS = [-1.0, 0.0, 0.3, 0.5, 1.0, 2.0]


def grid_of(weights=W, means=M, sds=S):
    x = torch.linspace(-8, 11, 801, dtype=F64)
    log_p = (weights.log() + Normal(means, sds).log_prob(x[:, None])).logsumexp(1)
    return Quadrature(x, log_p, math.log(19 / (801 - 1)))


def gaussian(grid, mean, sd):
    return log_normal(grid.x, *double([mean, math.log(sd)]))


TWO_MODES = grid_of()


def fit(alpha, grid=TWO_MODES):
    return minimise(grid, alpha, starts(grid))


def evaluate_divergence(log_p, log_q, dx, alpha):
    """Literal equation (17)."""
    return (1 - (log_p.exp() ** alpha * log_q.exp() ** (1 - alpha)).sum() * dx) / (
        alpha * (1 - alpha)
    )


@pytest.mark.parametrize("alpha", [-0.5, 0.2, 0.5, 0.9, 1.7])
def test_divergence_matches_equation_17_and_closed_form(alpha):
    target = Normal(0.3, 0.9)
    two = Normal(1.0, 1.1)
    grid = grid_of(torch.ones(1, dtype=F64), double([0.3]), double([0.9]))
    log_q = gaussian(grid, 1.0, 1.1)
    value = float(divergence(grid, log_q, alpha))
    dx = math.exp(grid.log_dx)
    assert value == pytest.approx(
        float(evaluate_divergence(grid.log_p, log_q, dx, alpha)), rel=1e-8
    )
    precision = alpha / target.variance + (1 - alpha) / two.variance
    spread = alpha * two.variance + (1 - alpha) * target.variance
    integral = (
        (target.scale ** (-alpha) * two.scale ** (alpha - 1) / precision.sqrt()).log()
        - 0.5 * alpha * (1 - alpha) * (target.mean - two.mean) ** 2 / spread
    ).exp()
    assert value == pytest.approx(float((1 - integral) / (alpha * (1 - alpha))), rel=1e-5)


def test_special_alphas_are_kl_and_hellinger():
    """Equations (18), (19), (20)."""
    target = Normal(*double([0.3, 0.9]))
    two = Normal(*double([1.0, 1.1]))
    grid = grid_of(torch.ones(1, dtype=F64), target.mean[None], target.scale[None])
    log_q = gaussian(grid, 1.0, 1.1)
    for alpha, kl in ((1.0, kl_divergence(target, two)), (0.0, kl_divergence(two, target))):
        for shift, close in ((0.0, 1e-9), (1e-4, 1e-3), (-1e-4, 1e-3)):
            value = float(divergence(grid, log_q, alpha + shift))
            assert value == pytest.approx(float(kl), rel=close)
    square = ((0.5 * grid.log_p).exp() - (0.5 * log_q).exp()).square().sum() * math.exp(grid.log_dx)
    assert float(divergence(grid, log_q, 0.5)) == pytest.approx(float(2 * square), rel=1e-9)


def test_alpha_0_is_variational_inference():
    zero = fit(0.0)
    grid = TWO_MODES
    log_n = gaussian(grid, zero.mean, zero.sd)
    n = (log_n + grid.log_dx).exp()
    elbo = float((n * (grid.log_p - log_n)).sum())
    assert math.log(zero.mass) == pytest.approx(elbo, abs=1e-10)
    for dm, ds in ((0.05, 0.0), (-0.05, 0.0), (0.0, 0.05), (0.0, -0.05)):
        other = gaussian(grid, zero.mean + dm, zero.sd + ds)
        assert ((other + grid.log_dx).exp() * (grid.log_p - other)).sum() < elbo
    assert zero.sd < 1.1  # near the mode of 0.8
    assert fit(1e-4).mean == pytest.approx(zero.mean, abs=1e-3)
    assert fit(1 - 1e-4).sd == pytest.approx(fit(1.0).sd, abs=1e-3)


@pytest.mark.parametrize("alpha", [-1.0, 0.3, 0.5, 1.0, 2.0])
def test_fitted_moments_match_weighted_product(alpha):
    """Mass, mean and second moment of q equal the moments of p^α q^{1−α} (Minka 2005, section 3.2),
    and the target's at α = 1."""
    fitted = fit(alpha)
    grid = TWO_MODES
    log_q = math.log(fitted.mass) + gaussian(grid, fitted.mean, fitted.sd)
    product = (alpha * grid.log_p + (1 - alpha) * log_q + grid.log_dx).exp()
    q = (log_q + grid.log_dx).exp()
    for power in (0, 1, 2):
        ours, theirs = ((weight * grid.x**power).sum() for weight in (q, product))
        assert float(ours) == pytest.approx(float(theirs), rel=1e-6)


@pytest.mark.parametrize("alpha", [-1.0, 0.5, 2.0])
def test_free_mass_keeps_the_shape(alpha):
    """The N(m, s²) that minimises (17) among normalised q is found in a search over (m, s)."""
    fitted = fit(alpha)
    dx = math.exp(TWO_MODES.log_dx)
    steps = torch.linspace(-0.2, 0.2, 9).tolist()
    best = min(
        (
            float(
                evaluate_divergence(
                    TWO_MODES.log_p, gaussian(TWO_MODES, fitted.mean + a, fitted.sd + b), dx, alpha
                )
            ),
            a,
            b,
        )
        for a in steps
        for b in steps
    )
    assert best[1:] == pytest.approx((0.0, 0.0), abs=1e-6)


def test_infinite_alphas_bound_the_target():
    """α → ∞ is the least q ≥ p, α → −∞ the largest q ≤ p; both touch p, and |α| = 60 is close to
    the limits."""
    x = TWO_MODES.x
    inside = (x > -4) & (x < 7)
    for alpha, sign in ((math.inf, 1), (-math.inf, -1)):
        fitted = fit(alpha)
        gap = sign * (
            math.log(fitted.mass) + gaussian(TWO_MODES, fitted.mean, fitted.sd) - TWO_MODES.log_p
        )
        assert gap.min() == pytest.approx(0.0, abs=1e-9)
        assert (gap[inside] >= -1e-9).all()
        near = fit(sign * 60.0)
        assert near.mass == pytest.approx(fitted.mass, rel=0.06)
        assert near.mean == pytest.approx(fitted.mean, abs=0.02)
    assert fit(-math.inf).sd == pytest.approx(0.8, abs=1e-3)  # the mode with the larger mass


@pytest.mark.parametrize("alpha", [-math.inf, *ALPHAS, math.inf])
def test_gaussian_target_is_fitted_exactly(alpha):
    grid = grid_of(torch.ones(1, dtype=F64), double([1.2]), double([0.7]))
    fitted = fit(alpha, grid)
    assert (fitted.mass, fitted.mean, fitted.sd) == pytest.approx((1.0, 1.2, 0.7), abs=1e-4)


def test_mass_grows_with_alpha():
    masses = [fit(alpha).mass for alpha in (-math.inf, *ALPHAS, math.inf)]
    assert masses == sorted(masses)
    log_n = gaussian(TWO_MODES, 0.4, 1.3)
    at_one = float(shape_objective(TWO_MODES, log_n, 1.0))
    for alpha in (1 - 1e-5, 1 + 1e-5):
        assert float(shape_objective(TWO_MODES, log_n, alpha)) == pytest.approx(at_one, rel=1e-3)
    assert float(log_mass(TWO_MODES, log_n, 1e-4)) == pytest.approx(
        float(log_mass(TWO_MODES, log_n, 0.0)), rel=1e-3
    )


def fit_gaussian(**keys):
    problem, rng = load("mixture_of_gaussians_1d")
    model = component("model", "target_density").build(problem, rng)
    inference = component("inference", "alpha_divergence", points=401, draws=2000, **keys)
    state = inference.init(model, problem, rng)
    state, info = inference.step(state, None, rng)
    return inference.posterior(state), problem, info


def test_run_scores_and_draws_figures():
    posterior, problem, info = fit_gaussian(alpha="inf", shown=["-inf", 1.0])
    expected = fit(math.inf)
    assert info["mass"] == pytest.approx(expected.mass, rel=1e-3)
    scores = posterior.scores()
    assert scores["q_mean/1"] == pytest.approx(0.6, abs=1e-5)
    assert scores["mass/-inf"] == pytest.approx(0.8, abs=2e-3)
    assert "divergence" not in scores
    assert posterior.flat.std() == pytest.approx(expected.sd, rel=0.05)
    figures = posterior.figures()
    assert [axis.get_title() for axis in figures["nearest_gaussians"].axes] == ["α = −∞", "α = 1"]
    assert len(figures["sizes_by_alpha"].axes) == 3
    torch.testing.assert_close(problem.mean, double([0.6]))
