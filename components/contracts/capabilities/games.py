"""Capabilities of players and of adversaries."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class QFunction(Protocol):
    """Action values Q(s, a, b) of one player for R replicates: a table or an approximator.

    A player's own actions come first; those of several opponents are one, numbered with the last opponent's running fastest."""

    def fresh(self, own: int, other: int) -> QFunction: ...  # at initial values, for other numbers of actions

    def q(self, s: Tensor) -> Tensor: ...  # s [R, …] -> [R, A, B], to be read before the next ``learn``

    def learn(self, s: Tensor, a: Tensor, b: Tensor, target: Tensor, rate: float | Tensor) -> None:
        """Moves Q(s, a, b) towards the target, in place; a, b, target and a rate that is a tensor are [R].  A rate of 0
        leaves a replicate alone."""
        ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


@runtime_checkable
class NoiseLaw(Protocol):
    """A contamination whose law is known: what an oracle needs."""

    def mixture(self, Sigma: Tensor) -> tuple[Tensor, Tensor]: ...  # weights [C], covariances [C, dy, dy]


@runtime_checkable
class NoiseDensity(Protocol):
    """A contamination whose corrupted noise has a known density where the clean noise is N(0, Σ)."""

    # of y' − E[y | x] [..., dy], Σ [dy, dy] or [..., dy, dy] -> [...]
    def log_noise_density(self, deviation: Tensor, Sigma: Tensor) -> Tensor: ...
