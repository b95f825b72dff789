import math

import pytest
import torch
from support.runs.configured import component, normal, uniform
from support.targets.known_targets import Funnel, correlated_gaussian, sample_target
from torch.testing import assert_close

from runner.execution.rng import Streams

FIXED = {"warmup": 0, "mass": "identity"}


def is_turning(momenta):
    """True if a trajectory, its halves, their halves … turn, by the criterion with Stan's two extra
    checks."""
    n = len(momenta)
    if n == 1:
        return False
    left_half = momenta[: n // 2]
    right_half = momenta[n // 2 :]

    def turns(a, b, rho):
        return float(a @ rho) <= 0 or float(b @ rho) <= 0

    whole = turns(left_half[0], right_half[-1], sum(momenta))
    with_first = turns(left_half[0], right_half[0], sum(left_half) + right_half[0])
    with_last = turns(left_half[-1], right_half[-1], sum(right_half) + left_half[-1])
    return whole or with_first or with_last or is_turning(left_half) or is_turning(right_half)


def literal(model, theta, r, u, eps, max_depth):
    """One draw of one chain, recursing over lists of states; u[j] holds direction, acceptance and
    leaves of doubling j."""

    def gradient(q):
        t = q[None].clone().requires_grad_()
        return torch.autograd.grad(model.log_prior(t).sum(), t)[0][0]

    def energy(q, p):
        return float(-model.log_prior(q[None])) + float(p @ p) / 2

    # states in temporal order
    H0 = energy(theta, r)
    states = [(theta, r)]
    draw = theta
    weight = 1.0
    n_steps = 0
    depth = 0
    for j in range(max_depth):
        sign = 1 if u[j][0] < 0.5 else -1
        q, p = states[-1] if sign == 1 else states[0]
        new = []
        new_weight = 0.0
        proposal = None
        for n in range(2**j):
            p = p + sign * eps / 2 * gradient(q)
            q = q + sign * eps * p
            p = p + sign * eps / 2 * gradient(q)
            n_steps += 1
            w = math.exp(H0 - energy(q, p)) if H0 - energy(q, p) > -1000 else 0.0
            new.append((q, p))
            if w == 0.0:
                return draw, n_steps, depth
            new_weight += w
            if u[j][2 + n] < w / new_weight:
                proposal = q
            full = [2**k for k in range(1, j + 1) if (n + 1) % 2**k == 0]
            if any(is_turning([sign * s[1] for s in new[-size:]]) for size in full):
                return draw, n_steps, depth
        if u[j][1] < new_weight / weight:
            draw = proposal
        states = states + new if sign == 1 else new[::-1] + states
        weight = weight + new_weight
        depth = depth + 1
        if is_turning([s[1] for s in states]):
            break
    return draw, n_steps, depth


@pytest.mark.parametrize(
    ("eps", "target"),
    [(0.15, correlated_gaussian(0.9)), (0.5, correlated_gaussian(0.5)), (0.25, Funnel())],
)
def test_every_chain_matches_literal_recursion(eps, target):
    C = 7
    rng = Streams(5)
    nuts = component("inference", "nuts", chains=C, step_size=eps, max_depth=6, **FIXED)
    state = nuts.init(target, None, rng)
    depths = set()
    for _ in range(8):
        repeat = torch.Generator()
        repeat.set_state(rng.noise.get_state())
        theta_before = state.theta
        r = normal(repeat, C, target.dim)
        u = [uniform(repeat, 2**j + 2, C) for j in range(6)]
        state, _ = nuts.step(state, None, rng)
        draws = nuts.posterior(state)
        for c in range(C):
            theta, n_steps, depth = literal(
                target, theta_before[c], r[c], [x[:, c].tolist() for x in u], eps, 6
            )
            assert_close(state.theta[c], theta, rtol=1e-9, atol=1e-9)
            assert int(draws.stats["n_steps"][c, -1]) == n_steps
            assert int(draws.stats["tree_depth"][c, -1]) == depth
            depths.add(depth)
    assert len(depths) > 1


def test_depth_is_bounded():
    shallow = sample_target(
        "nuts", correlated_gaussian(), 20, chains=5, step_size=1e-4, max_depth=3, **FIXED
    )
    assert shallow.stats["n_steps"].unique().tolist() == [7]


def test_finished_chains_are_not_evaluated():
    class Counting(type(correlated_gaussian())):
        rows = 0

        def log_prior(self, theta):
            self.rows += len(theta)
            return super().log_prior(theta)

    base = correlated_gaussian(0.95)
    target = Counting(base.mean, base.covariance)
    nuts = component("inference", "nuts", chains=40, step_size=0.1, **FIXED)
    rng = Streams(0)
    state = nuts.init(target, None, rng)
    target.rows = 0
    state, _ = nuts.step(state, None, rng)
    assert target.rows == state.stats["n_steps"].rows[-1].sum()
