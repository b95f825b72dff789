"""Small linear Gaussian sequences, and filters run on them without the loop."""

from __future__ import annotations

import math

import torch
from support.runs.configured import F64, component, generator, normal

from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.sequence import LinearGaussianSystem, Sequence
from runner.execution.rng import Streams


def system(seed: int = 0) -> LinearGaussianSystem:
    """A stable system with three states and two observations, without diagonal matrices."""
    g = generator(seed)

    def spd(d: int) -> torch.Tensor:
        b = normal(g, d, d)
        return b @ b.T / d + 0.3 * torch.eye(d, dtype=F64)

    turn = torch.linalg.qr(normal(g, 3, 3))[0]
    mean = normal(g, 3)
    H = normal(g, 2, 3)
    return LinearGaussianSystem(0.9 * turn, spd(3), H, spd(2), mean, spd(3))


def sequence(s: LinearGaussianSystem, length: int, replicates: int, seed: int = 1) -> Sequence:
    """One sequence drawn from the system; every replicate has the same observations, so that only a
    filter's noise differs."""
    g = generator(seed)

    def normal(covariance: torch.Tensor) -> torch.Tensor:
        return torch.linalg.cholesky(covariance) @ torch.randn(
            len(covariance), generator=g, dtype=F64
        )

    x = s.m0 + normal(s.P0)
    states = []
    batches = []
    for _ in range(length):
        x = s.A @ x + normal(s.Q)
        states.append(x)
        batches.append(s.H @ x + normal(s.Sigma))
    observations = torch.stack(batches).expand(replicates, -1, -1).contiguous()
    return Sequence(
        "test", torch.stack(states).unsqueeze(0), observations, s, [f"x{j}" for j in range(len(x))]
    )


def one_observation(y: float, slope: float, variance: float) -> Sequence:
    """y = slope · x + N(0, variance) with x ~ N(0, 1 + 0.5), in 80 replicates."""
    ones = torch.ones(1, 1, dtype=F64)
    s = LinearGaussianSystem(ones, 0.5 * ones, slope * ones, variance * ones, 0 * ones[0], ones)
    problem = sequence(s, 1, replicates=80)
    problem.observations[:] = y
    return problem


def moments_on_grid(log_g) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance of x with density proportional to N(x | 0, 1.5) exp(log_g(x))."""
    x = torch.linspace(-12, 12, 20_001, dtype=F64)
    w = (log_g(x) - x.square() / 3).softmax(0)
    return w @ x, w @ (x - w @ x).square()


def run(inference, model, problem, rng, spoil=None):
    """The posterior after all steps; ``spoil`` may corrupt the state between steps."""
    state = inference.init(model, problem, rng)
    for _, batch in problem.batches("observation", rng, 0, problem.length("observation")):
        state, _ = inference.step(state, batch, rng)
        if spoil is not None:
            spoil(state)
    return inference.posterior(state)


def run_filter(name: str, problem: Sequence, model=None, seed: int = 0, **keys):
    """The posterior of a named filter, with the problem's own linear model or another one."""
    model = LinearGaussianModule(problem.system) if model is None else model
    return run(component("inference", name, **keys), model, problem, Streams(seed))


def assert_same_estimates(got, expected) -> None:
    """Assert that two filters agree up to rounding."""
    for name in ("mean", "variance", "lower", "upper", "log_normaliser"):
        torch.testing.assert_close(
            getattr(got, name), getattr(expected, name), rtol=1e-9, atol=1e-9
        )


def gappy(length: int, replicates: int, apart: bool) -> Sequence:
    """A sequence with missing observations, equal in all replicates or not."""
    problem = sequence(system(), length, replicates)
    problem.observations[:, 3] = math.nan
    problem.observations[:, 0, 1] = math.nan
    if apart:
        problem.observations[1, 4] = math.nan
    return problem


def dense_posterior(problem: Sequence, r: int) -> tuple[torch.Tensor, torch.Tensor]:
    """E[x_1:T | y] [T, dx] and Cov[x_1:T | y] [T·dx, T·dx] of replicate r, from the joint Gaussian
    of all states.

    Its precision is constructed term by term: −2 log p(x_0:T, y) is a sum of squares in x_0:T.
    """
    s = problem.system
    y = problem.observations[r]
    missing = problem.missing[r]
    T = len(y)
    dx = len(s.m0)
    precision = torch.zeros((T + 1) * dx, (T + 1) * dx, dtype=F64)
    shift = torch.zeros((T + 1) * dx, dtype=F64)
    precision[:dx, :dx] += torch.linalg.inv(s.P0)
    shift[:dx] += torch.linalg.solve(s.P0, s.m0)
    inverse_Q = torch.linalg.inv(s.Q)
    inverse_S = torch.linalg.inv(s.Sigma)
    for t in range(T):
        move = torch.cat([-s.A, torch.eye(dx, dtype=F64)], 1)  # x_{t+1} − A x_t
        both = slice(t * dx, (t + 2) * dx)
        precision[both, both] += move.T @ inverse_Q @ move
        if not missing[t]:
            block = slice((t + 1) * dx, (t + 2) * dx)
            precision[block, block] += s.H.T @ inverse_S @ s.H
            shift[block] += s.H.T @ inverse_S @ y[t]
    covariance = torch.linalg.inv(precision)
    return (covariance @ shift)[dx:].view(T, dx), covariance[dx:, dx:]
