import math

import torch
from support.runs.configured import double, normal, uniform
from support.targets.known_targets import F64, correlated_gaussian, moment_z, sample_target
from torch.testing import assert_close

from components.inference.hamiltonian.mass import Mass
from runner.execution.rng import Streams

FIXED = {"warmup": 0, "trajectory": "fixed", "mass": "identity"}


def literal(model, steps, eps, L, seed):
    """One chain of scalar HMC with unit masses, on the random numbers of a batch of one."""
    rng = Streams(seed)
    theta = model.sample_prior(1, rng.init)[0].tolist()
    kept = []

    def log_density(x):
        return float(model.log_prior(double([x])))

    def gradient(x):
        t = torch.tensor([x], dtype=F64, requires_grad=True)
        return torch.autograd.grad(model.log_prior(t).sum(), t)[0][0].tolist()

    for _ in range(steps):
        r = normal(rng.noise, 1, model.dim)[0].tolist()
        q = list(theta)
        p = list(r)
        for _ in range(L):
            p = [b + eps / 2 * g for b, g in zip(p, gradient(q), strict=True)]
            q = [a + eps * b for a, b in zip(q, p, strict=True)]
            p = [b + eps / 2 * g for b, g in zip(p, gradient(q), strict=True)]
        energy_before = -log_density(theta) + sum(b * b for b in r) / 2
        after = -log_density(q) + sum(b * b for b in p) / 2
        u = float(uniform(rng.noise, 1))
        if u < math.exp(min(0.0, energy_before - after)):
            theta = q
        kept.append(theta)
    return double(kept)


def test_one_chain_matches_literal_algorithm():
    target = correlated_gaussian(0.6)
    draws = sample_target("hmc", target, 40, seed=3, chains=1, step_size=0.6, length=1.8, **FIXED)
    slow = literal(target, 40, 0.6, 3, seed=3)
    assert_close(draws.draws[0], slow, rtol=1e-9, atol=1e-9)
    rate = draws.stats["acceptance_rate"]
    assert 0.2 < rate.mean() < 0.95  # both branches were executed
    assert len(slow.unique(dim=0)) < 40


def test_wrong_inverse_mass_fails(monkeypatch):
    right = Mass.of

    def make_wrong_mass(covariance):
        return Mass(covariance, right(1 / covariance).root)

    monkeypatch.setattr(Mass, "of", staticmethod(make_wrong_mass))
    target = correlated_gaussian()
    draws = sample_target("hmc", target, 250, chains=200, warmup=150, trajectory="fixed")
    assert moment_z(draws, target) > 6


def test_trajectory_lengths_follow_settings():
    keys = {"step_size": 0.3, "length": 1.0, "warmup": 0, "chains": 2}
    fixed = sample_target("hmc", correlated_gaussian(), 4, trajectory="fixed", **keys)
    assert fixed.stats["n_steps"].unique().tolist() == [4]
    # four steps have exactly the requested length
    assert fixed.stats["step_size"].unique().tolist() == [0.25]
    jittered = sample_target("hmc", correlated_gaussian(), 4, trajectory="jittered", **keys)
    assert jittered.stats["n_steps"][0].tolist() == [2, 1, 3, 1]  # h = 1/2, 1/4, 3/4, 1/8
    short = sample_target("hmc", correlated_gaussian(), 2, trajectory="fixed", max_steps=3, **keys)
    assert short.stats["n_steps"].max() == 3
