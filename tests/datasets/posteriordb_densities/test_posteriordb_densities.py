"""Densities of posteriordb's posteriors compared with formulas of torch.distributions and with
reference draws."""

import pytest
import torch
from support.runs.configured import F64, double, generator, normal
from support.runs.real_files import find_or_skip
from support.targets.exact_moments import school_moments
from support.targets.literal_posteriors import free_coordinates, literal, small_data
from torch.autograd import grad
from torch.testing import assert_close

from components.datasets.densities.posteriordb import paths, read
from components.datasets.named_target import Variable
from components.datasets.posteriordb_densities import DENSITIES
from components.datasets.posteriordb_densities.eight_schools import eight_schools
from components.datasets.posteriordb_densities.gaussian_regressions import GaussianRegression
from components.datasets.posteriordb_densities.scale_priors import half_normal
from components.metrics.diagnostics import mcse_mean

EMPTY = double([])


@pytest.mark.parametrize("posterior", DENSITIES)
def test_density_is_literal_formula_times_jacobian(posterior):
    data = small_data(posterior)
    density = DENSITIES[posterior](data, EMPTY)
    g = generator(2)
    theta = torch.cat([density.start(5, g), normal(g, 5, density.dim)])
    ours = density.log_density(theta)
    free = free_coordinates(posterior)
    expected = []
    for row in theta:

        def parameters(t):
            values = density.constrain(t[None])[0]
            return values[free] if free else values

        matrix = torch.autograd.functional.jacobian(parameters, row)
        log_jacobian = torch.linalg.slogdet(matrix)[1]
        expected.append(literal(posterior, data, density.constrain(row[None])[0]) + log_jacobian)
    difference = ours - torch.stack(expected)
    scale = 1e-9 * ours.abs().max()
    assert (difference - difference[0]).abs().max() < max(float(scale), 1e-9), (
        "equal up to a constant"
    )


@pytest.mark.parametrize("posterior", DENSITIES)
def test_parameters_invert_to_theta_and_chains_do_not_mix(posterior):
    density = DENSITIES[posterior](small_data(posterior), EMPTY)
    theta = density.start(7, generator(0))
    values = density.constrain(theta)
    assert theta.shape == (7, density.dim)
    assert values.shape == (7, len(density.names))
    assert_close(density.unconstrain(values), theta)
    alone = torch.cat([density.log_density(row[None]) for row in theta])
    assert torch.allclose(density.log_density(theta), alone, rtol=1e-10)


@pytest.mark.parametrize("posterior", DENSITIES)
def test_extreme_points_have_a_number_or_zero_density(posterior):
    """A distant proposal must be rejected without ending the run, which NaN and +∞ would do."""
    density = DENSITIES[posterior](small_data(posterior), EMPTY)
    g = generator(3)
    for size in (30.0, 1e3, 1e5):
        value = density.log_density(size * normal(g, 200, density.dim))
        assert not torch.isnan(value).any(), size
        assert not (value == torch.inf).any(), size


def test_exact_moments_of_a_regression_match_a_fine_grid():
    g = generator(4)
    X = normal(g, 6, 1)
    y = normal(g, 6)
    density = GaussianRegression((Variable("beta"),), X, y, half_normal(1.0), ([0.5], [0.7]))
    beta = torch.linspace(-6, 6, 801, dtype=F64)
    log_scale = torch.linspace(-4, 2, 801, dtype=F64)
    theta = torch.cartesian_prod(beta, log_scale)
    weight = density.log_density(theta).softmax(0)
    values = density.constrain(theta)
    mean, second = density.exact_moments()
    assert_close(mean, weight @ values, rtol=1e-6, atol=0)
    assert_close(second, weight @ values.square(), rtol=1e-6, atol=0)


def test_exact_moments_of_one_school_match_a_fine_grid():
    data = {"y": [3.0], "sigma": [2.0]}
    density = eight_schools(data, EMPTY)
    eta = torch.linspace(-6, 6, 81, dtype=F64)
    mu = torch.linspace(-25, 25, 161, dtype=F64)
    theta = torch.cartesian_prod(eta, mu, torch.linspace(-8, 9, 241, dtype=F64))
    values = density.constrain(theta)
    weight = density.log_density(theta).softmax(0)
    mean, _ = school_moments(data)
    # E τ is infinite: one school does not identify τ
    assert_close(mean[:2], (weight @ values)[:2], rtol=1e-2, atol=0)


# against the reference draws
def reference(posterior):
    """The density with its real data, and the reference draws [10, 1000, P']."""
    data, draws, mean, second = map(read, find_or_skip(*paths(posterior)))
    density = DENSITIES[posterior](data, EMPTY)
    values = double([[chain[name] for name in density.names] for chain in draws]).mT
    return density, values, mean, second


def stein_z(density, values, lost=0.0, power=1.0):
    """z-scores of E[∇log p] = 0 and E[(u − ū) ∇log p] = −I, [P + P²], with ∇log p minus ``lost``
    [P] and times ``power``."""
    theta = density.unconstrain(values.flatten(0, 1)).requires_grad_()
    (gradient,) = grad(density.log_density(theta).sum(), theta)
    theta = theta.detach()
    gradient = power * (gradient - lost)
    second = (theta - theta.mean(0)).unsqueeze(2) * gradient.unsqueeze(1) + torch.eye(
        density.dim, dtype=F64
    )
    # [10, 1000, P + P²]
    f = torch.cat([gradient, second.flatten(1)], 1).unflatten(0, values.shape[:2])
    return f.mean((0, 1)) / mcse_mean(f)


@pytest.mark.parametrize("posterior", DENSITIES)
def test_stein_identities_hold_for_reference_draws(posterior):
    density, values, *_ = reference(posterior)
    assert_close(density.constrain(density.unconstrain(values.flatten(0, 1))), values.flatten(0, 1))
    z = stein_z(density, values)
    assert z.abs().max() < 4


WIDE = [
    "kilpisjarvi_mod-kilpisjarvi",
    "mesquite-logmesquite",
    "garch-garch11",
    "gp_pois_regr-gp_regr",
    "eight_schools-eight_schools_noncentered",
]


@pytest.mark.slow
@pytest.mark.parametrize("posterior", WIDE)
def test_stein_identities_fail_without_the_jacobian_of_a_scale(posterior):
    """The missing ∇ log|det J| = 1 is detectable if the posterior is wide; literal formulas cover
    posteriors that are narrow because there are many data."""
    density, values, *_ = reference(posterior)
    lost = torch.zeros(density.dim, dtype=F64)
    lost[1 if posterior.startswith("garch") else -1] = 1.0
    assert stein_z(density, values, lost).abs().max() > 8


@pytest.mark.slow
@pytest.mark.parametrize("posterior", DENSITIES)
def test_stein_identities_fail_for_a_tempered_density(posterior):
    """log p / 0.8 has E[(u − ū) ∇log p] = −1.25 I."""
    density, values, *_ = reference(posterior)
    assert stein_z(density, values, power=1.25).abs().max() > 8


BY_QUADRATURE = [
    name
    for name in DENSITIES
    if name.startswith(("sblri", "kidiq", "kilpis", "mesquite", "nes", "arK", "eight"))
]


@pytest.mark.parametrize("posterior", BY_QUADRATURE)
def test_reference_moments_match_quadrature(posterior):
    density, _, *files = reference(posterior)
    if posterior.startswith("eight"):
        moments = school_moments(read(find_or_skip(*paths(posterior))[0]))
    else:
        moments = density.exact_moments()
    for ours, file, key in zip(moments, files, ("mean_value", "mean_squared_value"), strict=True):
        z = (ours - double(file[key])) / double(file["mcse_mean"])
        assert z.abs().max() < 4
