"""Superchains: groups of chains with a common start, for nested R̂ of many short chains."""

from __future__ import annotations

from collections.abc import Callable

import torch
from pydantic import BaseModel, PositiveInt, model_validator
from torch import Tensor


class Superchains(BaseModel):
    """Sampler of C independent chains that may start in K groups of C/K consecutive chains.

    Chains of a group share their start; they differ only by their random numbers.

    Source: Margossian et al. (2024), section 2."""

    chains: PositiveInt
    superchains: PositiveInt | None

    @model_validator(mode="after")
    def _check_superchains(self) -> Superchains:
        K = self.superchains
        if K is not None and (K < 2 or self.chains % K or self.chains == K):
            raise ValueError(
                f"superchains: {K} must be at least 2 and divide chains={self.chains} into groups of two or more; "
                "null: no groups"
            )
        return self


def count_superchains(method: object) -> int | None:
    """Number of superchains of a method as configured; None if each chain has its own start."""
    return method.superchains if isinstance(method, Superchains) else None


StartFunction = Callable[[int, torch.Generator], Tensor]  # n, generator -> θ [n, P]


def share_starts(begin: StartFunction, together: int) -> StartFunction:
    """``begin`` with each start shared by consecutive rows; unchanged if the number per start is
    1."""
    if together == 1:
        return begin

    def shared(n: int, generator: torch.Generator) -> Tensor:
        return begin(n // together, generator).repeat_interleave(together, 0)

    return shared
