from __future__ import annotations

import math

import pytest
import torch
from support.runs.configured import component, normal
from support.targets.known_targets import (
    F64,
    ExactGamma,
    Funnel,
    GammaTarget,
    correlated,
    moment_z,
    sampled,
)
from support.targets.rank_test import NormalGamma, Rows, two_sample_p
from torch.testing import assert_close

from components.inference.hamiltonian import tree
from components.inference.hamiltonian.mass import Mass
from runner.execution.rng import Streams

FIXED = {"warmup": 0, "mass": "identity"}


def turning(momenta: list) -> bool:
    """Whether a trajectory, its halves, their halves … turn, by the criterion with Stan's two extra
    checks."""
    n = len(momenta)
    if n == 1:
        return False
    left, right = momenta[: n // 2], momenta[n // 2 :]

    def turns(a, b, rho):
        return float(a @ rho) <= 0 or float(b @ rho) <= 0

    whole = turns(left[0], right[-1], sum(momenta))
    with_first = turns(left[0], right[0], sum(left) + right[0])
    with_last = turns(left[-1], right[-1], sum(right) + left[-1])
    return whole or with_first or with_last or turning(left) or turning(right)


def literal(model, theta, r, u: list, eps: float, max_depth: int):
    """One draw of one chain, recursing over lists of states; u[j] holds direction, acceptance and
    leaves of doubling j."""

    def gradient(q):
        t = q[None].clone().requires_grad_()
        return torch.autograd.grad(model.log_prior(t).sum(), t)[0][0]

    def energy(q, p):
        return float(-model.log_prior(q[None])) + float(p @ p) / 2

    H0, states, chosen = energy(theta, r), [(theta, r)], theta  # states in the order of time
    weight, n_steps, depth = 1.0, 0, 0
    for j in range(max_depth):
        sign = 1 if u[j][0] < 0.5 else -1
        q, p = states[-1] if sign == 1 else states[0]
        new, new_weight, proposal = [], 0.0, None
        for n in range(2**j):
            p = p + sign * eps / 2 * gradient(q)
            q = q + sign * eps * p
            p = p + sign * eps / 2 * gradient(q)
            n_steps += 1
            w = math.exp(H0 - energy(q, p)) if H0 - energy(q, p) > -1000 else 0.0
            new.append((q, p))
            if w == 0.0:
                return chosen, n_steps, depth
            new_weight += w
            if u[j][2 + n] < w / new_weight:
                proposal = q
            full = [2**k for k in range(1, j + 1) if (n + 1) % 2**k == 0]
            if any(turning([sign * s[1] for s in new[-size:]]) for size in full):
                return chosen, n_steps, depth
        if u[j][1] < new_weight / weight:
            chosen = proposal
        states = states + new if sign == 1 else new[::-1] + states
        weight, depth = weight + new_weight, depth + 1
        if turning([s[1] for s in states]):
            break
    return chosen, n_steps, depth


@pytest.mark.parametrize(
    ("eps", "target"), [(0.15, correlated(0.9)), (0.5, correlated(0.5)), (0.25, Funnel())]
)
def test_every_chain_is_the_literal_recursion(eps, target):
    C, rng = 7, Streams(5)
    nuts = component("inference", "nuts", chains=C, step_size=eps, max_depth=6, **FIXED)
    state = nuts.init(target, None, rng)
    depths = set()
    for _ in range(8):
        again = torch.Generator()
        again.set_state(rng.noise.get_state())
        before = state.theta
        r = normal(again, C, target.dim)
        u = [torch.rand(2**j + 2, C, generator=again, dtype=F64) for j in range(6)]
        state, _ = nuts.step(state, None, rng)
        draws = nuts.posterior(state)
        for c in range(C):
            theta, n_steps, depth = literal(
                target, before[c], r[c], [x[:, c].tolist() for x in u], eps, 6
            )
            assert_close(state.theta[c], theta, rtol=1e-9, atol=1e-9)
            assert int(draws.stats["n_steps"][c, -1]) == n_steps
            assert int(draws.stats["tree_depth"][c, -1]) == depth
            depths.add(depth)
    assert len(depths) > 1


@pytest.mark.parametrize(
    "target", [correlated(), GammaTarget(), Funnel()], ids=["gaussian", "gamma", "funnel"]
)
@pytest.mark.parametrize("mass", ["diagonal", "dense"])
def test_moments_are_exact(target, mass):
    draws = sampled("nuts", target, 180, chains=200, warmup=80, mass=mass)
    assert moment_z(draws, target) < 4
    assert draws.stats["tree_depth"].max() <= 10
    assert_close(draws.stats["lp"][:, -1], target.log_prior(draws.draws[:, -1]))


def test_mutants_fail_where_the_sampler_passes(monkeypatch):
    target, settings = ExactGamma(6.0), {"chains": 400, "step_size": 0.55, **FIXED}

    def z(model=target):
        return moment_z(sampled("nuts", model, 60, **settings), target)

    assert z() < 4
    with monkeypatch.context() as m:  # all states of a trajectory weigh the same
        m.setattr(tree, "energy_error", lambda after, before: torch.zeros_like(after))
        assert z() > 6
    with monkeypatch.context() as m:
        m.setattr(tree, "energy_error", lambda after, before: before - after)
        assert z() > 6
    with monkeypatch.context() as m:  # momenta not drawn afresh
        m.setattr(Mass, "momentum", lambda self, like, generator: torch.ones_like(like))
        assert not z() < 6
    with monkeypatch.context() as m:  # kinetic energy of the wrong mass
        m.setattr(Mass, "kinetic", lambda self, r, velocity=None: (r * r).sum(-1))
        assert z() > 6
    assert z(ExactGamma(6.0, jacobian=False)) > 6


class Joint:
    """(θ, y) of NormalGamma as one density over six coordinates, of which exact draws are at
    hand."""

    names: list = []

    def __init__(self):
        self.model = NormalGamma()
        self.dim = 2 + self.model.rows

    def constrain(self, theta):
        return theta

    def sample_prior(self, n, generator):
        theta = self.model.sample_prior(n, generator)
        return torch.cat([theta, self.model.sample_data(theta, generator).y], 1)

    def sample_data(self, theta, generator):
        return Rows(theta.new_zeros(len(theta), 0))

    def log_prior(self, theta):
        rows = Rows(theta[:, 2:])
        return self.model.log_prior(theta[:, :2]) + self.model.log_likelihood(
            theta[:, :2], rows
        ).sum(1)

    def log_likelihood(self, theta, batch):
        return theta.new_zeros(len(theta), 0)


def test_kernel_leaves_a_density_invariant_and_its_mutants_do_not(monkeypatch):
    settings = {"replications": 1500, "steps": 4, "step_size": 0.5, "max_depth": 6, **FIXED}
    assert two_sample_p("nuts", Joint(), **settings) > 1e-3
    with monkeypatch.context() as m:
        m.setattr(tree, "energy_error", lambda after, before: torch.zeros_like(after))
        assert two_sample_p("nuts", Joint(), **settings) < 1e-3
    with monkeypatch.context() as m:
        m.setattr(
            Mass,
            "momentum",
            lambda self, like, g: 1.3 * torch.randn(like.shape, generator=g, dtype=like.dtype),
        )
        assert two_sample_p("nuts", Joint(), **settings) < 1e-3


def test_depth_is_bounded_and_divergences_end_a_trajectory():
    shallow = sampled("nuts", correlated(), 20, chains=5, step_size=1e-4, max_depth=3, **FIXED)
    assert shallow.stats["n_steps"].unique().tolist() == [7]
    nuts, rng = component("inference", "nuts", chains=50, step_size=60.0, **FIXED), Streams(0)
    state = nuts.init(correlated(), None, rng)
    for _ in range(3):
        state, info = nuts.step(state, None, rng)
    draws = nuts.posterior(state)
    assert info["divergences"] == draws.stats["diverging"].sum() == 150
    assert draws.stats["n_steps"].unique().tolist() == [1]
    assert draws.stats["tree_depth"].unique().tolist() == [0]
    assert torch.equal(draws.draws[:, -1], state.start)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_is_that_of_the_target(dtype):
    target = correlated().to(dtype)
    draws = sampled("nuts", target, 70, chains=100, warmup=40, mass="dense")
    assert draws.draws.dtype == dtype
    assert moment_z(draws, target) < 4


def test_chains_that_are_done_are_not_evaluated():
    class Counting(type(correlated())):
        rows = 0

        def log_prior(self, theta):
            self.rows += len(theta)
            return super().log_prior(theta)

    base = correlated(0.95)
    target = Counting(base.mean, base.covariance)
    nuts, rng = component("inference", "nuts", chains=40, step_size=0.1, **FIXED), Streams(0)
    state = nuts.init(target, None, rng)
    target.rows = 0
    state, _ = nuts.step(state, None, rng)
    assert target.rows == int(state.stats["n_steps"].rows[-1].sum())
