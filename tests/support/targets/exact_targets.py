"""Harder targets with known moments, and mutants of the acceptance step, shared by tests of exact
samplers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from support.runs.configured import component, double
from support.targets.known_targets import (
    GammaTarget,
    PriorAlone,
    correlated_gaussian,
    sample_target,
)
from torch import Tensor
from torch.testing import assert_close

from components.errors import NumericalError
from runner.execution.rng import Streams


class Line(PriorAlone):
    """A target on the line; chains start at N(0, 1)."""

    dim = 1
    names = ["x"]

    def __init__(self, first: float, second: float):
        self.first = double([first])
        self.second = double([second])


class HeavyTails(Line):
    """Student's t with ν = 7: a chain must return from tails with a flat log density."""

    def __init__(self) -> None:
        super().__init__(0.0, 7 / 5)

    def log_prior(self, theta: Tensor) -> Tensor:
        return -4 * (theta[:, 0].square() / 7).log1p()


class TwoModes(Line):
    """0.3 N(−1.5, 0.5²) + 0.7 N(1.5, 1)."""

    def __init__(self) -> None:
        super().__init__(0.6, 0.3 * (2.25 + 0.25) + 0.7 * (2.25 + 1))

    def log_prior(self, theta: Tensor) -> Tensor:
        x = theta[:, 0]
        log_left = torch.log(double(0.3 / 0.5)) - 2 * (x + 1.5) ** 2
        right = torch.log(double(0.7)) - 0.5 * (x - 1.5) ** 2
        return torch.logaddexp(log_left, right)


class HalfNormal(Line):
    """|N(0, 1)|: for x < 0 the log density is −∞ and its gradient NaN."""

    def __init__(self) -> None:
        super().__init__((2 / torch.pi) ** 0.5, 1.0)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return super().sample_prior(n, generator).abs()

    def log_prior(self, theta: Tensor) -> Tensor:
        x = theta[:, 0]
        return torch.where(x < 0, -torch.inf, -0.5 * x**2 + 0 * x.sqrt())


class Broken(Line):
    """A density that is NaN beyond x = 2."""

    spread = 0.1

    def __init__(self) -> None:
        super().__init__(0.0, 1.0)

    def log_prior(self, theta: Tensor) -> Tensor:
        x = theta[:, 0]
        return -0.01 * x**2 + torch.where(x > 2, torch.nan, 0.0)


TARGETS: dict[str, Any] = {
    "correlated": correlated_gaussian,
    "gamma": GammaTarget,
    "heavy tails": HeavyTails,
    "two modes": TwoModes,
    "half normal": HalfNormal,
}


def mutate(monkeypatch: Any, module: Any, mutant: str) -> None:
    """Break the acceptance step of a sampler's ``module``."""
    true = module.metropolis_hastings

    def broken(value: Tensor, proposed: Tensor, correction: Any, t: int, generator: Any) -> Any:
        if mutant == "half the log ratio":
            return true(0.5 * value, 0.5 * proposed, correction, t, generator)
        if mutant == "no correction":
            return true(value, proposed, 0.0, t, generator)
        if mutant == "correction upside down":
            return true(value, proposed, -correction, t, generator)
        assert mutant == "everything accepted"
        return true(proposed, proposed, 0.0, t, generator)

    monkeypatch.setattr(module, "metropolis_hastings", broken)


def check_edges(name: str, step_size: float) -> None:
    """Assert that zero density is rejected, and that a NaN density is an error."""
    draws = sample_target(name, HalfNormal(), 300, chains=50, warmup=0, step_size=step_size)
    assert (draws.draws >= 0).all()
    assert (draws.stats["acceptance_rate"] == 0).any()
    with pytest.raises(
        NumericalError,
        match=r"proposals of chains .* step \d+; lower inference\.step_size",
    ):
        sample_target(name, Broken(), 300, chains=50, warmup=0, step_size=1.0)


def check_warm_up(name: str, warmup: int, steps: int, acceptance: float) -> Any:
    """Draws of 16 chains; asserts that the proposal is adapted in warm-up, and fixed afterwards."""
    target = correlated_gaussian()
    rng = Streams(0)
    method = component("inference", name, chains=16, warmup=warmup)
    state = method.init(target, None, rng)
    kernels = []
    for t in range(steps):
        state, _ = method.step(state, None, rng)
        if t >= warmup - 2:
            kernels.append((state.proposal.log_step.clone(), state.proposal.factor.clone()))
    assert not torch.equal(kernels[0][1], kernels[1][1])
    assert all(
        torch.equal(k[0], kernels[1][0]) and torch.equal(k[1], kernels[1][1]) for k in kernels[1:]
    )
    assert_close(state.proposal.moments["covariance"], target.covariance, rtol=0.2, atol=0.02)
    draws = method.posterior(state)
    assert draws.stats["acceptance_rate"].mean() == pytest.approx(acceptance, abs=0.03)
    assert_close(draws.stats["lp"].flatten(), target.log_prior(draws.flat))
    return draws


without_jacobian = partial(GammaTarget, jacobian=False)
