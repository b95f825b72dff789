"""The Gumbel-softmax gradient: declared biased, compared with its literal formula, and less biased
at lower temperatures."""

import pytest
from contract.only import restrict
from support.runs.configured import component, uniform
from support.small.small_bernoulli import (
    binary_rows,
    enumerated_elbo,
    enumerated_gradient,
    flat,
    small_dvae,
)
from torch.autograd import grad
from torch.testing import assert_close

from components.contracts.capabilities import BernoulliLayers
from runner.execution.rng import Streams


def test_gumbel_softmax_matches_formula():
    """∇ of f at z̄_1 = σ((α_1 + logit u_1)/λ), z̄_2 = σ((α_2(z̄_1) + logit u_2)/λ)."""
    problem = binary_rows(n=3)
    module = small_dvae(problem)
    estimator = component("gradient", "gumbel_softmax", temperature=0.7, n_samples=2)
    gradients, _, _ = estimator.estimate(module, problem.train, Streams(0), None)
    g = Streams(0).noise
    u1, u2 = (uniform(g, 2, 3, 3) for _ in range(2))
    z1 = ((module.down[0](problem.train.x) + u1.logit()) / 0.7).sigmoid()
    z2 = ((module.down[1](z1) + u2.logit()) / 0.7).sigmoid()
    bound = (
        (module.log_joint(problem.train, (z1, z2)) - module.log_q(problem.train, (z1, z2)))
        .mean(0)
        .sum()
    )
    assert_close(flat(gradients), flat(grad(bound, list(module.parameters()))))


def test_bias_falls_with_temperature():
    problem = binary_rows(n=2)
    module = small_dvae(problem)
    stub = restrict(module, BernoulliLayers)  # it requires nothing else
    exact = enumerated_gradient(module, problem.train)
    off = []
    for temperature in (2.0, 0.1):
        estimator = component(
            "gradient", "gumbel_softmax", temperature=temperature, n_samples=50_000
        )
        assert not estimator.unbiased
        gradients, terms, state = estimator.estimate(
            stub, problem.train, Streams(0), estimator.init(stub, Streams(0))
        )
        assert state is None
        elbo = enumerated_elbo(module, problem.train).item()
        assert float(terms["elbo"]) == pytest.approx(elbo, abs=0.06)
        off.append(float((flat(gradients) - exact).norm()))
    assert off[0] > 0.3 * float(exact.norm())
    assert off[1] < 0.5 * off[0]
