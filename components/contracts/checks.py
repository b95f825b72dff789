"""What is checked of a finished run, beside its scores: of how it was sampled or trained, and of how it was attacked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from torch import Tensor

S = TypeVar("S", contravariant=True)  # the state of an inference method

FINITE = "scores are finite"  # the check that a run has to pass, or it has diverged
TRACED = frozenset({"ess", "elbo", "discriminator_loss"})  # information of steps that checks ask for in the end
Trace = Sequence[tuple[int, Mapping[str, Any]]]  # (step, what it said: numbers, or one for each replicate), as recorded


class Check(NamedTuple):
    """One thing that should hold of a run."""

    name: str  # what should hold
    passed: bool | None  # None: not checked, the detail says why
    detail: str  # the numbers that say so


@dataclass(frozen=True)
class Response:
    """How a step of a method that follows the gradient answers to it: θ moves by A ∇log p, A [K·P, K·P] positive.

    Where the largest eigenvalue of A times the curvature −∇² log p exceeds ``limit``, the path swings ever wider: 2 where
    steps have no memory, 2 (1 + β) where the share β of the last step is taken again.

    Source: Polyak (1964)."""

    apply: Callable[[Tensor], Tensor]  # A g of g [K, P]
    limit: float


@runtime_checkable
class RespondsToGradient(Protocol[S]):
    """An inference method of which ``evaluation.stability`` asks whether its steps are small enough for the curvature."""

    def response(self, state: S) -> Response: ...  # of the largest step since draws are kept
