"""REBAR, RELAX and their combination, compared with an enumerated gradient and a literal formula,
and their learning."""

import copy

import pytest
import torch
from support.runs.configured import component, generator, normal, uniform
from support.small.small_bernoulli import (
    binary_rows,
    flat,
    guide_variance,
    small_dvae,
)
from torch.autograd import grad
from torch.testing import assert_close

from components.gradients.bernoulli.layers import logistic
from components.gradients.bernoulli.relaxation import conditional
from runner.execution.rng import Streams


def test_logistic_noise_is_finite_at_the_ends():
    assert logistic(torch.tensor([0.0, 0.5, 1 - 1e-8])).isfinite().all()


def test_relax_matches_formula():
    """RELAX on REBAR, layer by layer: (f − c(ζ̃)) (z − σ(α)) + ∂/∂α (c(ζ) − c(ζ̃)), c by separate
    loops."""
    problem = binary_rows(n=3)
    module = small_dvae(problem)
    x = problem.train.x
    estimator = component("gradient", "relax_rebar", widths=[4], temperature=0.7, coefficient=0.8)
    state = estimator.init(module, Streams(1))
    g = generator(2)
    for parameter in state.control.surrogates.parameters():
        parameter.data.copy_(normal(g, parameter.shape))
    state_before = copy.deepcopy(state)
    estimate, _, _ = estimator.estimate(module, problem.train, Streams(0), state)

    noise = Streams(0).noise
    u1, u2, v1, v2 = (uniform(noise, 1, 3, 3) for _ in range(4))
    a1 = module.down[0](x)[None]
    z1 = (a1 + u1.logit() > 0).double()
    a2 = module.down[1](z1)
    z2 = (a2 + u2.logit() > 0).double()
    networks = state_before.control.surrogates.networks

    def f(*z):
        return module.log_joint(problem.train, z) - module.log_q(problem.train, z)

    def first(zeta):
        soft = (zeta / 0.7).sigmoid()
        relaxed = 0.8 * f(soft, module.down[1](soft).sigmoid())
        return relaxed + networks[0](torch.cat([x[None], zeta], -1))[..., 0]

    def second(zeta):
        return (
            0.8 * f(z1, (zeta / 0.7).sigmoid())
            + networks[1](torch.cat([x[None], z1, zeta], -1))[..., 0]
        )

    surrogate = module.log_joint(problem.train, (z1, z2)).sum()
    for alpha, u, v, z, c in ((a1, u1, v1, z1, first), (a2, u2, v2, z2, second)):
        a = alpha.detach().requires_grad_()
        off = (-a).sigmoid()
        free = a + u.logit()
        tied = a + torch.where(z > 0, off + v * (1 - off), v * off).logit()
        assert torch.equal(tied > 0, z > 0)
        assert_close(tied, conditional(z, a, v))
        (slope,) = grad((c(free) - c(tied)).sum(), a)
        by_alpha = (f(z1, z2) - c(tied))[..., None] * (z - a.sigmoid()) + slope
        surrogate = surrogate + (by_alpha.detach() * alpha).sum()
    assert_close(flat(estimate), flat(grad(surrogate, list(module.parameters()))))


def test_untrained_networks_change_nothing():
    """Initially relax equals the score function, and relax_rebar equals REBAR."""
    problem = binary_rows(n=3)
    module = small_dvae(problem)

    def first(name, **keys):
        estimator = component("gradient", name, **keys)
        return flat(
            estimator.estimate(
                module, problem.train, Streams(5), estimator.init(module, Streams(0))
            )[0]
        )

    assert_close(first("relax"), first("rebar", coefficient=0.0, adapt="static"))
    assert_close(first("relax_rebar"), first("rebar"))


@pytest.mark.parametrize(
    ("name", "keys", "steps", "ratio"),
    [
        ("rebar", {"coefficient": 0.2, "temperature": 2.0}, 80, 0.85),
        ("relax", {"widths": [10]}, 150, 0.6),
    ],
)
def test_learnt_relaxation_reduces_variance(name, keys, steps, ratio):
    problem = binary_rows(n=6)
    rng = Streams(0)
    module = small_dvae(problem)
    estimator = component("gradient", name, lr=0.05, **keys)
    state = estimator.init(module, rng)
    first = copy.deepcopy(state)
    for _ in range(steps):
        state = estimator.estimate(module, problem.train, rng, state)[2]
    without = component("gradient", "rebar", adapt="static", coefficient=0.0)
    plain = guide_variance(without, without.init(module, rng))
    unlearnt = guide_variance(estimator, first)
    if name == "rebar":
        assert unlearnt < 0.9 * plain
    assert guide_variance(estimator, state) < ratio * unlearnt
