"""The split normal noise of (6.19): simulated, evaluated and integrated."""

import math

import pytest
import torch
from support.runs.configured import F64, component, double, draw_normal, generator, load
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.series.models.asymmetric_wiener import log_split_normal


def build(**keys):
    problem, rng = load("asymmetric_wiener", replicates=2, n_steps=5)
    return problem, component("model", "asymmetric_wiener", **keys).build(problem, rng)


@pytest.mark.parametrize("coin", ["shared", "each"])
def test_simulated_noise_has_the_density_of_6_19(coin):
    problem, _ = load("asymmetric_wiener", replicates=100, n_steps=400, coin=coin)
    noise = problem.observations - problem.states @ problem.system.H.T
    flat = noise.flatten(0, 1)
    above = (noise > 0).flatten(0, 1)
    assert z_score(above.double(), 0.5).abs().max() < 4
    assert z_score(flat[above].square(), 100.0).abs() < 4
    assert z_score(flat[~above].square(), 1.0).abs() < 4
    root = math.sqrt(2 / math.pi)
    assert z_score(flat, (10 * root - root) / 2).abs().max() < 4
    together = (above[:, 0] == above[:, 1]).double()
    assert together.mean() == 1 if coin == "shared" else abs(z_score(together, 0.5)) < 4
    if coin == "shared":  # sizes are independent of the side
        sizes = flat.abs() / torch.where(above, 10.0, 1.0)
        assert abs(z_score((sizes[:, 0] - root) * (sizes[:, 1] - root), 0.0)) < 4


def test_states_equal_those_of_the_symmetric_model():
    skewed, _ = load("asymmetric_wiener", replicates=3, n_steps=20)
    plain, _ = load("wiener_velocity", replicates=1, n_steps=20)
    assert torch.equal(skewed.states, plain.states)
    assert_close(skewed.means, skewed.states @ skewed.system.H.T)
    assert skewed.system.Sigma.tolist() == [[1, 0], [0, 1]]


def test_observation_density_equals_the_printed_product():
    _, model = build()
    y = double([[3.0, -0.5], [0.0, 7.0]])
    x = draw_normal(2, 3, 4)
    log_p = model.log_observation(y, x, 1)
    for r in range(2):
        for n in range(3):
            density = 1.0
            for j in range(2):
                e = float(y[r, j] - x[r, n, j])
                s = 1.0 if e <= 0 else 10.0
                density *= math.exp(-(e**2) / (2 * s**2)) / math.sqrt(2 * math.pi * s**2)
            assert float(log_p[r, n]) == pytest.approx(math.log(density), abs=1e-12)


def test_each_half_has_half_of_the_mass():
    z = torch.linspace(-80, 80, 1_600_001, dtype=F64)
    g = log_split_normal(z, 1.0, 10.0).exp() * (z[1] - z[0])
    assert g[z <= 0].sum() == pytest.approx(0.5, abs=1e-4)
    assert g[z > 0].sum() == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("power", [1.0, 1.05, 1.1, 1.2, 1.8])
def test_power_integral_equals_closed_form_and_quadrature(power):
    problem, by_quadrature = build()
    _, closed = build(integral="closed_form")
    x = problem.states
    z = torch.linspace(-150, 150, 3_000_001, dtype=F64)
    literal = 2 * math.log(
        float((power * log_split_normal(z, 1.0, 10.0)).exp().sum() * (z[1] - z[0]))
    )
    assert float(closed.log_power_integral(x, 1, power)) == pytest.approx(literal, abs=1e-4)
    assert float(by_quadrature.log_power_integral(x, 1, power)) == pytest.approx(
        float(closed.log_power_integral(x, 1, power)), abs=1e-9
    )


def test_bound_is_attained():
    problem, model = build()
    x = problem.states[:, :1]
    just_below = model.observation_mean(x, 1)[:, 0] - 1e-9
    assert float(model.log_observation(just_below, x, 1)) == pytest.approx(
        model.log_observation_bound(1), abs=1e-9
    )
    noise = 20 * draw_normal(2, 2, seed=1)
    assert (
        model.log_observation(problem.means[:, 0] + noise, x.expand(2, 3, 4), 1)
        <= model.log_observation_bound(1)
    ).all()


def test_equal_scales_give_the_normal():
    problem, model = build(below=3.0, above=3.0)
    x = problem.states[:, :4].expand(2, -1, -1)
    y = problem.observations[:, 0]
    normal = torch.distributions.Normal(x[..., :2], 3.0).log_prob(y.unsqueeze(1)).sum(-1)
    assert_close(model.log_observation(y, x, 1), normal)
    exact = 0.5 * (1 - 1.3) * 2 * math.log(2 * math.pi * 9) - math.log(1.3)
    assert float(model.log_power_integral(x, 1, 1.3)) == pytest.approx(exact, abs=1e-9)


def test_dynamics_equal_those_of_the_linear_model():
    problem, model = build()
    x = problem.states[:, :3]
    linear = model.dynamics
    g, h = (generator(3) for _ in range(2))
    assert torch.equal(model.transition(x, 1, g), linear.transition(x, 1, h))
    assert_close(model.transition_mean(x, 1), x @ problem.system.A.T)
    assert torch.equal(model.log_transition(x, x, 1), linear.log_transition(x, x, 1))
