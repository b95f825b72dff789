"""double_cv and rodeo, compared with an enumerated gradient and literal formulas, and their
learning."""

import copy
import itertools

import pytest
import torch
from support.runs.configured import F64, component, double, generator, normal, uniform
from support.small.small_bernoulli import (
    binary_rows,
    every_z,
    flat,
    guide_variance,
    small_dvae,
)
from torch.autograd import grad
from torch.testing import assert_close

from components.contracts.problems import Rows
from components.gradients.bernoulli.leave_one_out import DrawsWithSlope
from runner.execution.rng import Streams

LEARN = pytest.mark.parametrize(("name", "keys"), [("double_cv", {}), ("rodeo", {"widths": [4]})])


def draws_of(module, batch, S, seed=0):
    """S draws, and f and its slopes by a backward pass for each."""
    z = module.sample(batch, S, Streams(seed).noise)
    layers = tuple(layer.clone().requires_grad_() for layer in z)
    f = module.log_joint(batch, layers) - module.log_q(batch, layers)
    p = [
        module.logits(batch, z[:i]).sigmoid().expand_as(layer).detach() for i, layer in enumerate(z)
    ]
    return DrawsWithSlope(list(z), p, list(grad(f.sum(), layers)), f.detach())


def to_parameters(module, batch, draws, by_alpha):
    """Σ_l ∂ℒ/∂α_l ∂α_l/∂φ + ∂ E log p, of draws of all layers."""
    S = len(draws.f)
    z = tuple(draws.z)
    total = module.log_joint(batch, z).mean(0).sum()
    for layer, g in enumerate(by_alpha):
        total = total + (g * module.logits(batch, z[:layer])).sum() / S
    return flat(grad(batch.scale * total, list(module.parameters())))


def mean_of_others(x):
    """(S − 1)⁻¹ Σ_{j ≠ s} x_j of each draw s."""
    return (x.sum(0) - x) / (len(x) - 1)


def test_double_control_variates_match_equation():
    """The displayed equation, layer by layer."""
    problem = binary_rows(n=2)
    S = 3
    a = (0.7, -0.4)
    module = small_dvae(problem)
    batch = Rows(problem.train.x, 2.5)
    estimator = component("gradient", "double_cv", n_samples=S)
    state = estimator.init(module, Streams(0))
    state.control.coefficient.data.copy_(torch.tensor(a))
    estimate, _, _ = estimator.estimate(module, batch, Streams(0), state)
    d = draws_of(module, batch, S)
    layers = list(zip(a, map(mean_of_others, d.slope), d.z, d.probability, strict=True))
    h = d.f - sum(c * (slope * (z - mu)).sum(-1) for c, slope, z, mu in layers)
    signal = (h - mean_of_others(h))[..., None]
    by_alpha = [signal * (z - mu) + c * slope * mu * (1 - mu) for c, slope, z, mu in layers]
    assert_close(flat(estimate), to_parameters(module, batch, d, by_alpha))


def test_rodeo_matches_equation():
    """The displayed equation: operators as sums over flips, H one pair of draws at a time."""
    problem = binary_rows(n=2)
    S = 3
    module = small_dvae(problem)
    batch = Rows(problem.train.x, 2.5)
    estimator = component("gradient", "rodeo", n_samples=S, widths=[4], coefficient=0.6)
    state = estimator.init(module, Streams(0))
    g = generator(3)
    with torch.no_grad():
        for parameter in state.control.networks.parameters():
            parameter.copy_(normal(g, parameter.shape))
        state.control.mean.fill_(-3.0)
        state.control.variance.fill_(4.0)
    H = copy.deepcopy(state.control)
    estimate, _, _ = estimator.estimate(module, batch, Streams(0), state)
    d = draws_of(module, batch, S)

    def surrogate(layer, s, b, y):
        values = []
        for j in range(S):
            if j != s:
                rise = d.slope[layer][j, b] @ (y - d.z[layer][j, b])
                inside = torch.stack([(d.f[j, b] + 3.0) / 2.0, rise / 2.0])
                values.append(0.6 * rise + 2.0 * H.networks[layer](inside))
        return sum(values) / (S - 1)  # [2]

    baseline = d.f.clone()
    vectors = [torch.zeros(S, 2, 3, dtype=F64) for _ in range(2)]
    for s, b, layer in itertools.product(range(S), range(2), range(2)):
        z = d.z[layer][s, b]
        mu = d.probability[layer][s, b]
        for i in range(3):
            flipped = z.clone()
            flipped[i] = 1 - z[i]
            rate = mu[i] if flipped[i] > 0 else 1 - mu[i]
            flipped_value = surrogate(layer, s, b, flipped)
            value = surrogate(layer, s, b, z)
            baseline[s, b] += (rate * (flipped_value[0] - value[0])).item()
            vectors[layer][s, b] += (
                rate * (flipped_value[1] * (flipped - mu) - value[1] * (z - mu))
            ).detach()
    signal = (d.f - mean_of_others(baseline))[..., None]
    by_alpha = [
        signal * (z - mu) + vector
        for z, mu, vector in zip(d.z, d.probability, vectors, strict=True)
    ]
    assert_close(flat(estimate), to_parameters(module, batch, d, by_alpha))


def test_stein_operator_has_mean_0():
    """E_q A h = 0 over all values of a layer, for any surrogate; here for a draw compared with a
    fixed one."""
    estimator = component("gradient", "rodeo", n_samples=2, widths=[4])
    module = small_dvae(binary_rows(n=1), 1)
    g = generator(0)
    control = estimator.init(module, Streams(0)).control
    for parameter in control.parameters():
        parameter.data.copy_(normal(g, parameter.shape))
    (values,) = every_z(1)  # [8, 1, 3]
    mu = uniform(g, 1, 1, 3)
    still = double([[1.0, 0.0, 1.0]])
    slope = normal(g, 2, 1, 3)
    f = normal(g, 2, 1)
    total = torch.zeros(4, dtype=F64)
    size = 0.0
    for z in values:
        draws = DrawsWithSlope([torch.stack([z, still])], [mu.expand(2, 1, 3)], [slope], f)
        scalar, vector = estimator._stein(control, draws, 0)
        estimate = torch.cat([scalar[0], vector[0, 0]]).detach()
        weight = float(torch.where(z > 0, mu[0], 1 - mu[0]).prod())
        total = total + weight * estimate
        size = size + weight * float(estimate.abs().max())
    assert size > 0.1
    assert_close(total, torch.zeros(4, dtype=F64), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("name", "keys"), [("double_cv", {}), ("rodeo", {})])
def test_without_control_variates_estimator_is_leave_one_out(name, keys):
    problem = binary_rows(n=3)
    module = small_dvae(problem)
    estimator = component("gradient", name, n_samples=3, coefficient=0.0, **keys)
    estimate, terms, _ = estimator.estimate(
        module, problem.train, Streams(0), estimator.init(module, Streams(1))
    )
    loo, expected, _ = component("gradient", "vargrad", n_samples=3).estimate(
        module, problem.train, Streams(0), None
    )
    assert_close((flat(estimate), terms["elbo"]), (flat(loo), expected["elbo"]))


@LEARN
def test_learnt_control_variates_reduce_variance(name, keys):
    problem = binary_rows(n=6)
    rng = Streams(0)
    module = small_dvae(problem)
    estimator = component("gradient", name, n_samples=3, lr=0.03, **keys)
    state = estimator.init(module, rng)
    for _ in range(100):
        state = estimator.estimate(module, problem.train, rng, state)[2]
    loo = component("gradient", "vargrad", n_samples=3)
    assert guide_variance(estimator, state) < 0.9 * guide_variance(loo)
    assert not torch.equal(
        state.control.coefficient, estimator.init(module, Streams(0)).control.coefficient
    )
