"""Harder targets with known moments, and mutants of the accept step: what tests of exact samplers
share."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from known_targets import F64, GammaTarget, GaussianTarget, correlated
from torch import Tensor


class Line(GaussianTarget):
    """A target on the line; chains start at N(0, 1)."""

    dim, names = 1, ["x"]

    def __init__(self, first: float, second: float):
        self.first, self.second = (
            torch.tensor([first], dtype=F64),
            torch.tensor([second], dtype=F64),
        )

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return torch.randn(n, 1, generator=generator, dtype=F64)


class HeavyTails(Line):
    """Student's t with ν = 7: far out a chain must come back from where the log density is flat."""

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
        left = torch.log(torch.tensor(0.3 / 0.5, dtype=F64)) - 2 * (x + 1.5) ** 2
        right = torch.log(torch.tensor(0.7, dtype=F64)) - 0.5 * (x - 1.5) ** 2
        return torch.logaddexp(left, right)


class HalfNormal(Line):
    """|N(0, 1)|, whose log density is −∞ for x < 0 and whose gradient there is NaN."""

    def __init__(self) -> None:
        super().__init__((2 / torch.pi) ** 0.5, 1.0)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return super().sample_prior(n, generator).abs()

    def log_prior(self, theta: Tensor) -> Tensor:
        x = theta[:, 0]
        return torch.where(x < 0, -torch.inf, -0.5 * x**2 + 0 * x.sqrt())


class Broken(Line):
    """A density that is NaN beyond x = 2."""

    def __init__(self) -> None:
        super().__init__(0.0, 1.0)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return 0.1 * super().sample_prior(n, generator)

    def log_prior(self, theta: Tensor) -> Tensor:
        x = theta[:, 0]
        return -0.01 * x**2 + torch.where(x > 2, torch.nan, 0.0)


TARGETS: dict[str, Any] = {
    "correlated": correlated,
    "gamma": GammaTarget,
    "heavy tails": HeavyTails,
    "two modes": TwoModes,
    "half normal": HalfNormal,
}


def mutate(monkeypatch: Any, module: Any, mutant: str) -> None:
    """Breaks the accept step that a sampler's ``module`` uses."""
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


without_jacobian = partial(GammaTarget, jacobian=False)
