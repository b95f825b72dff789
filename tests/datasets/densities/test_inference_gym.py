"""Targets of the Inference Gym: literal densities, gradients and exactly known moments."""

import math

import pytest
import torch
from support.runs.configured import F64, load_problem
from support.runs.real_files import FOLDER, find_or_skip
from torch.distributions import Beta, Cauchy, HalfCauchy, LogNormal, MultivariateNormal, Normal

from components.datasets.densities.inference_gym import paths
from components.datasets.inference_gym_densities import TARGETS

T = 6
OBSERVED = [0.3, None, -0.1, 0.2, None, 0.4]
EMPTY = torch.empty(0, dtype=F64)


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=F64)


def differs_by_a_constant(value, literal):
    difference = value - torch.stack(literal)
    return float(difference.std()) < 1e-9


def test_brownian_motion_with_unknown_scales_equals_formula():
    target = TARGETS["brownian_motion_unknown_scales"]({"observed": OBSERVED}, EMPTY)
    theta = draw(5, T + 2)
    literal = []
    for s, r, x in zip(theta[:, 0].exp(), theta[:, 1].exp(), theta[:, 2:], strict=True):
        value = LogNormal(0.0, 2.0).log_prob(s) + LogNormal(0.0, 2.0).log_prob(r)
        value = value + Normal(0.0, s).log_prob(x[0]) + s.log() + r.log()
        for t in range(1, T):
            value = value + Normal(x[t - 1], s).log_prob(x[t])
        for y, location in zip(OBSERVED, x, strict=True):
            if y is not None:
                value = value + Normal(location, r).log_prob(torch.tensor(y, dtype=F64))
        literal.append(value)
    assert differs_by_a_constant(target.log_density(theta), literal)


def test_lorenz_bridge_equals_formula():
    data = {"observed": OBSERVED, "observation_index": 0, "step_size": 0.02}
    data |= {"observation_scale": 1.0, "innovation_scale": 0.1}
    target = TARGETS["lorenz_bridge"](data, EMPTY)
    theta = draw(5, 3 * T)
    literal = []
    for path in theta:
        u = path.reshape(T, 3)
        value = Normal(0.0, 1.0).log_prob(u[0]).sum()
        for t in range(1, T):
            x, y, z = u[t - 1]
            velocity = torch.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
            step = Normal(u[t - 1] + 0.02 * velocity, math.sqrt(0.02) * 0.1)
            value = value + step.log_prob(u[t]).sum()
        for t, observation in enumerate(OBSERVED):
            if observation is not None:
                value = value + Normal(u[t, 0], 1.0).log_prob(torch.tensor(observation, dtype=F64))
        literal.append(value)
    assert differs_by_a_constant(target.log_density(theta), literal)


def test_stochastic_volatility_equals_formula():
    returns = [0.1, -0.2, 0.05, 0.3, -0.1, 0.02]
    target = TARGETS["stochastic_volatility_small"]({"centered_returns": returns}, EMPTY)
    theta = draw(5, T + 3)
    literal = []
    states = target.constrain(theta)
    for z, (mu, u, v), reported in zip(theta[:, :T], theta[:, T:], states, strict=True):
        phi = 2 * u.sigmoid() - 1
        sigma = v.exp()
        x = [mu + sigma * z[0] / (1 - phi**2).sqrt()]
        for t in range(1, T):
            x.append(mu + phi * (x[-1] - mu) + sigma * z[t])
        x = torch.stack(x)
        assert torch.allclose(reported, torch.cat([x, torch.stack([mu, phi, sigma])]))
        value = Normal(0.0, (x / 2).exp()).log_prob(torch.tensor(returns, dtype=F64)).sum()
        value = value + Beta(20.0, 1.5).log_prob((phi + 1) / 2) + Cauchy(0.0, 5.0).log_prob(mu)
        value = (
            value
            + HalfCauchy(torch.tensor(2.0, dtype=F64)).log_prob(sigma)
            + Normal(0.0, 1.0).log_prob(z).sum()
        )
        literal.append(value + v + u.sigmoid().log() + (-u).sigmoid().log())
    assert differs_by_a_constant(target.log_density(theta), literal)


def test_log_gaussian_cox_process_equals_formula():
    places = [[0.0, 0.0], [1.0, 0.5], [2.0, 1.0]]
    data = {"locations": places, "extents": [1.0, 2.0, 1.0], "counts": [3, 5, 1]}
    target = TARGETS["log_gaussian_cox"](data, EMPTY)
    theta = 0.5 * draw(5, 5)
    x, extents, counts = (torch.tensor(data[k], dtype=F64) for k in data)
    mean = (counts.log() - extents.log()).mean()
    literal = []
    for row in target.constrain(theta):
        a = row[0]
        length = row[1]
        f = row[2:]
        d = math.sqrt(3) * torch.cdist(x, x) / (length + 1e-3)
        K = (a + 1e-3) ** 2 * (1 + d) * (-d).exp() + 1e-6 * torch.eye(3, dtype=F64)
        value = MultivariateNormal(mean.expand(3), K).log_prob(f)
        value = value + torch.distributions.Poisson(extents * f.exp()).log_prob(counts).sum()
        value = value + LogNormal(-1.0, 0.5).log_prob(a) + LogNormal(-1.0, 1.0).log_prob(length)
        log_det = torch.linalg.cholesky(K).diagonal().log().sum()  # of f in the whitened process
        literal.append(value + log_det + a.log() + length.log())
    assert differs_by_a_constant(target.log_density(theta), literal)


def load_target(name):
    find_or_skip(*paths(name))
    return load_problem("inference_gym", FOLDER, target=name)


@pytest.mark.parametrize("name", TARGETS)
def test_gradient_is_the_derivative_of_the_density(name):
    density = load_target(name)
    theta = density.sample_prior(2, torch.Generator().manual_seed(0)).requires_grad_()
    (slope,) = torch.autograd.grad(density.log_density(theta).sum(), theta)
    direction = draw(*theta.shape)
    step = 1e-6 * direction
    with torch.no_grad():
        rise = density.log_density(theta + step) - density.log_density(theta - step)
    assert torch.allclose((slope * direction).sum(1), rise / 2e-6, rtol=1e-5)
    assert len(density.names) == len(density.mean) == density.constrain(theta).shape[1]


def test_reference_moments_of_the_brownian_motion_are_exact():
    """The posterior is Gaussian: its mean and standard deviations solve a linear system."""
    density = load_target("brownian_motion")
    origin = torch.zeros(1, density.dim, dtype=F64)
    precision = -torch.func.hessian(lambda x: density.log_density(x[None])[0])(origin[0])
    slope = torch.func.grad(lambda x: density.log_density(x[None])[0])(origin[0])
    mean = torch.linalg.solve(precision, slope)
    sd = torch.linalg.inv(precision).diagonal().sqrt()
    assert float(((density.mean - mean).abs() / density.mean_error).max()) < 4
    reference_sd = (density.second_moment - density.mean.square()).sqrt()
    assert torch.allclose(reference_sd, sd, rtol=0.01)
