"""Capabilities of players and of adversaries."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class QFunction(Protocol):
    """Action values Q(s, a, b) of one player for R replicates: a table or an approximator.

    a is the player's own action; b combines the actions of all opponents into one index, in which
    the last opponent's action varies fastest.
    """

    # at initial values, with other numbers of actions
    def fresh(self, own: int, other: int) -> QFunction: ...

    # s [R, …] -> [R, A, B], valid until the next ``learn``
    def q(self, s: Tensor) -> Tensor: ...

    def learn(self, s: Tensor, a: Tensor, b: Tensor, target: Tensor, rate: float | Tensor) -> None:
        """Move Q(s, a, b) towards the target, in place.

        a, b, target and a rate that is a tensor are [R].  A rate of 0 leaves a replicate
        unchanged.
        """

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


@runtime_checkable
class NoiseLaw(Protocol):
    """A contamination with a known distribution, which an oracle requires."""

    # weights [C], covariances [C, dy, dy]
    def mixture(self, Sigma: Tensor) -> tuple[Tensor, Tensor]: ...


@runtime_checkable
class NoiseDensity(Protocol):
    """A contamination with a known density of the corrupted noise for clean noise N(0, Σ)."""

    # of y' − E[y | x] [..., dy], Σ [dy, dy] or [..., dy, dy] -> [...]
    def log_noise_density(self, deviation: Tensor, Sigma: Tensor) -> Tensor: ...
