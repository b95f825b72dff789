"""Funnel and banana: densities compared with torch.distributions, moments with quadrature, and
probabilities of figures."""

import math
import re

import pytest
import torch
from support.runs.configured import F64, double, draw_normal, load
from support.targets.known_targets import z_score
from torch import distributions as d
from torch.autograd import gradcheck
from torch.testing import assert_close

from components.posteriors.draws import Draws


def gaussian(sd):
    """N(0, sd²) in double precision; a plain float would make it single."""
    return d.Normal(double(0.0), torch.as_tensor(sd, dtype=F64))


def funnel_draws(n, dim, scale):
    z = draw_normal(n, dim, seed=0)
    v = scale * z[:, :1]
    return torch.cat([v, (v / 2).exp() * z[:, 1:]], 1)


def banana_draws(n, dim, scale, twist):
    z = draw_normal(n, dim, seed=0)
    z[:, 0] *= scale
    z[:, 1] -= twist * (z[:, 0] ** 2 - scale**2)
    return z


@pytest.mark.parametrize(
    ("keys", "rate"), [({"scale": 2.0}, 0.5), ({"scale": 1.35, "spread": "sd"}, 1.0)]
)
def test_funnel_density_literally(keys, rate):
    """v ~ N(0, s²), x ~ N(0, sd e^{rate v})."""
    problem, _ = load("funnel", dim=4, **keys)
    theta = funnel_draws(6, 4, 2.0)
    for row, value in zip(theta, problem.log_density(theta), strict=True):
        log_v = gaussian(keys["scale"]).log_prob(row[0])
        log_x = gaussian(math.exp(rate * row[0])).log_prob(row[1:]).sum()
        assert float(value) == pytest.approx(float(log_v + log_x), rel=1e-12)
    assert gradcheck(problem.log_density, theta.requires_grad_())


@pytest.mark.parametrize(
    ("keys", "power"), [({"scale": 1.5}, 1), ({"scale": 1.35, "spread": "sd"}, 2)]
)
def test_funnel_has_the_exact_second_moment(keys, power):
    """E[x²] = ∫ e^{power v} N(v | 0, s²) dv by quadrature, because x² of draws has a very large
    variance."""
    problem, _ = load("funnel", dim=3, **keys)
    v = torch.linspace(-12, 20, 20_001, dtype=F64)
    exact = torch.trapezoid((power * v).exp() * gaussian(keys["scale"]).log_prob(v).exp(), v)
    assert_close(problem.second_moment[1], exact)


def test_funnel_moments():
    """Only v is drawn for the second moment."""
    problem, _ = load("funnel", dim=3, scale=1.5)
    draws = funnel_draws(100_000, 3, 1.5)
    assert z_score(draws, problem.mean).abs().max() < 4
    assert z_score(draws[:, :1] ** 2, problem.second_moment[:1]).abs().max() < 4


def test_banana_density_literally():
    problem, _ = load("banana", dim=3, scale=3.0, twist=0.2)
    theta = banana_draws(6, 3, 3.0, 0.2)
    scale = double([3.0, 1.0, 1.0])
    for row, value in zip(theta, problem.log_density(theta), strict=True):
        z = row.clone()
        z[1] += 0.2 * (row[0] ** 2 - 9)
        assert float(value) == pytest.approx(float(gaussian(scale).log_prob(z).sum()), rel=1e-12)
    assert gradcheck(problem.log_density, theta.requires_grad_())


@pytest.mark.parametrize("twist", [0.2, -0.3, 0.0])
def test_banana_moments(twist):
    problem, _ = load("banana", dim=3, scale=3.0, twist=twist)
    draws = banana_draws(200_000, 3, 3.0, twist)
    assert z_score(draws, problem.mean).abs().max() < 4
    assert z_score(draws**2, problem.second_moment).abs().max() < 4


@pytest.mark.parametrize("name", ["funnel", "banana"])
def test_plane_shows_the_marginal_of_two_parameters(name):
    """The figure shows the marginal density of the first two parameters: with exact draws, its
    regions have their nominal probabilities."""
    problem, rng = load(name, dim=5, **({"scale": 1.5} if name == "funnel" else {}))
    draws = funnel_draws(40_000, 5, 1.5) if name == "funnel" else banana_draws(40_000, 5, 10.0, 0.1)
    kept = draws.reshape(4, 10_000, 5)
    figures = problem.draw(Draws(kept, kept[:, 0], problem.names), rng)
    assert set(figures) >= {"marginal", "trace"}  # in addition to figures of all samples
    percentages = [int(p) for p in re.findall(r"(\d+) %", figures["marginal"].axes[0].get_title())]
    assert percentages[1::2] == [50, 90, 99]
    assert percentages[0::2] == pytest.approx([50, 90, 99], abs=1.5)
    assert problem.sample_prior(7, rng.init).shape == (7, 5)
