from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import component, double, normal
from support.targets.known_targets import (
    F64,
    ExactGamma,
    Funnel,
    GammaTarget,
    correlated,
    moment_z,
    sampled,
)
from support.targets.rank_test import NormalGamma, rank_p
from torch.testing import assert_close

from components.inference.hamiltonian import hmc as module
from components.inference.hamiltonian.mass import Mass
from runner.execution.rng import Streams

FIXED = {"warmup": 0, "trajectory": "fixed", "mass": "identity"}


def literal(model, steps: int, eps: float, L: int, seed: int) -> torch.Tensor:
    """One chain of scalar HMC with unit masses, written out, on the random numbers that a batch of
    one takes."""
    rng = Streams(seed)
    theta, kept = model.sample_prior(1, rng.init)[0].tolist(), []

    def log_density(x):
        return float(model.log_prior(double([x])))

    def gradient(x):
        t = torch.tensor([x], dtype=F64, requires_grad=True)
        return torch.autograd.grad(model.log_prior(t).sum(), t)[0][0].tolist()

    for _ in range(steps):
        r = normal(rng.noise, 1, model.dim)[0].tolist()
        q, p = list(theta), list(r)
        for _ in range(L):
            p = [b + eps / 2 * g for b, g in zip(p, gradient(q), strict=True)]
            q = [a + eps * b for a, b in zip(q, p, strict=True)]
            p = [b + eps / 2 * g for b, g in zip(p, gradient(q), strict=True)]
        before = -log_density(theta) + sum(b * b for b in r) / 2
        after = -log_density(q) + sum(b * b for b in p) / 2
        u = float(torch.rand(1, generator=rng.noise, dtype=F64))
        if u < math.exp(min(0.0, before - after)):
            theta = q
        kept.append(theta)
    return double(kept)


def test_one_chain_is_the_literal_algorithm():
    target = correlated(0.6)
    draws = sampled("hmc", target, 40, seed=3, chains=1, step_size=0.6, length=1.8, **FIXED)
    slow = literal(target, 40, 0.6, 3, seed=3)
    assert_close(draws.draws[0], slow, rtol=1e-9, atol=1e-9)
    rate = draws.stats["acceptance_rate"]
    assert 0.2 < rate.mean() < 0.95  # both branches were taken
    assert len(slow.unique(dim=0)) < 40


SETTINGS = {
    "fixed": {"trajectory": "fixed", "mass": "diagonal"},
    "jittered": {"trajectory": "jittered", "mass": "dense"},
    "chees": {"trajectory": "chees", "mass": "dense"},
}


@pytest.mark.parametrize("trajectory", SETTINGS)
@pytest.mark.parametrize(
    "target", [correlated(), GammaTarget(), Funnel()], ids=["gaussian", "gamma", "funnel"]
)
def test_moments_are_exact(target, trajectory):
    draws = sampled("hmc", target, 350, chains=200, warmup=150, **SETTINGS[trajectory])
    assert moment_z(draws, target) < 4
    assert draws.stats.keys() == {
        "lp",
        "diverging",
        "acceptance_rate",
        "energy",
        "n_steps",
        "step_size",
    }
    lp = target.log_prior(draws.draws[:, -1])
    assert_close(draws.stats["lp"][:, -1], lp)


def coarse(target) -> float:
    """|z| with steps whose errors of the energy are large, so that the accept step matters."""
    draws = sampled("hmc", target, 100, chains=400, step_size=0.5, length=1.0, **FIXED)
    return moment_z(draws, ExactGamma(6.0))


def test_mutants_fail_where_the_sampler_passes(monkeypatch):
    assert coarse(ExactGamma(6.0)) < 4
    with monkeypatch.context() as m:  # the wrong sign
        m.setattr(module, "acceptance", lambda error: error.exp().clamp(max=1.0))
        assert coarse(ExactGamma(6.0)) > 6
    with monkeypatch.context() as m:
        m.setattr(module, "acceptance", lambda error: torch.ones_like(error))
        assert coarse(ExactGamma(6.0)) > 6
    with monkeypatch.context() as m:  # momenta that are always those of the first step
        m.setattr(Mass, "momentum", lambda self, like, generator: torch.ones_like(like))
        assert not coarse(ExactGamma(6.0)) < 6
    with monkeypatch.context() as m:  # kinetic energy of the wrong mass
        m.setattr(Mass, "kinetic", lambda self, r: (r * r).sum(-1))
        assert coarse(ExactGamma(6.0)) > 6
    assert coarse(ExactGamma(6.0, jacobian=False)) > 6


def test_a_wrong_inverse_of_the_mass_fails(monkeypatch):
    target = correlated()

    def z():
        return moment_z(
            sampled("hmc", target, 250, chains=200, warmup=150, trajectory="fixed"), target
        )

    assert z() < 4
    right = Mass.of
    monkeypatch.setattr(
        Mass, "of", staticmethod(lambda covariance: Mass(covariance, right(1 / covariance).root))
    )
    assert z() > 6


def test_kernel_passes_the_rank_test_and_its_mutants_do_not(monkeypatch):
    settings = {"step_size": 0.4, **FIXED}
    assert rank_p("hmc", NormalGamma(), replications=2000, length=6, **settings) > 1e-3
    with monkeypatch.context() as m:
        m.setattr(module, "acceptance", lambda error: torch.ones_like(error))
        assert rank_p("hmc", NormalGamma(), replications=2000, length=6, **settings) < 1e-3
    with monkeypatch.context() as m:
        m.setattr(
            Mass,
            "momentum",
            lambda self, like, g: 1.3 * torch.randn(like.shape, generator=g, dtype=like.dtype),
        )
        assert rank_p("hmc", NormalGamma(), replications=2000, length=6, **settings) < 1e-3


def test_divergences_are_counted_and_rejected():
    hmc, rng = (
        component("inference", "hmc", chains=50, step_size=4.0, length=20.0, **FIXED),
        Streams(0),
    )
    state = hmc.init(correlated(), None, rng)
    for _ in range(5):
        state, info = hmc.step(state, None, rng)
    draws = hmc.posterior(state)
    assert info["divergences"] == draws.stats["diverging"].sum() == 250
    assert torch.equal(draws.draws[:, -1], state.start)
    assert draws.stats["acceptance_rate"].sum() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_is_that_of_the_target(dtype):
    target = correlated().to(dtype)
    draws = sampled("hmc", target, 120, chains=100, warmup=60, mass="dense")
    assert draws.draws.dtype == dtype
    assert draws.stats["energy"].dtype == dtype
    assert moment_z(draws, target) < 4


def test_lengths_of_trajectories():
    eps = {"step_size": 0.3, "length": 1.0, "warmup": 0, "chains": 2}
    fixed = sampled("hmc", correlated(), 4, trajectory="fixed", **eps)
    assert fixed.stats["n_steps"].unique().tolist() == [4]
    # four steps last exactly as long as was asked
    assert fixed.stats["step_size"].unique().tolist() == [0.25]
    jittered = sampled("hmc", correlated(), 4, trajectory="jittered", **eps)
    assert jittered.stats["n_steps"][0].tolist() == [2, 1, 3, 1]  # h = 1/2, 1/4, 3/4, 1/8
    assert (
        sampled("hmc", correlated(), 2, trajectory="fixed", max_steps=3, **eps)
        .stats["n_steps"]
        .max()
        == 3
    )


def test_configurations_that_cannot_be():
    with pytest.raises(ValidationError, match="chees learns from how chains differ"):
        component("inference", "hmc", chains=1)
    with pytest.raises(ValidationError, match="chees learns in warm-up"):
        component("inference", "hmc", warmup=0)
