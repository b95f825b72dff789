"""Rewards, beliefs and policy of a decision maker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from torch import Tensor

if TYPE_CHECKING:
    pass


@runtime_checkable
class Played(Protocol):
    """Rewards of a decision maker in t episodes, and its current policy."""

    @property
    def rewards(self) -> Tensor: ...  # [R, t]

    @property
    # what each of M opponents got, and welfare [M + 1, R, t]; empty: not recorded
    def beside(self) -> Tensor: ...

    @property
    def firsts(
        self,
    ) -> Tensor: ...  # share of moves that was action 0, hers and each opponent's [1 + M, R, t]; empty likewise

    @property
    # [R, A] expected value of each of her actions in the present state
    def values(self) -> Tensor: ...

    @property
    # [R, B] her belief about the opponents' next actions; None: she has none
    def forecast(self) -> Tensor | None: ...

    @property
    def beliefs(self) -> dict[str, Tensor]: ...  # scores of what she believes of her opponents [R]

    @property
    def s(self) -> Tensor: ...  # where the next episode begins [R, …]

    def values_at(self, s: Tensor) -> Tensor: ...  # ``values`` in states s [R, …]

    def policy_in(self, s: Tensor) -> Tensor: ...  # probabilities of her actions in states s [R, A]
