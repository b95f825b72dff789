"""What a decision maker has earned, believes and would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from torch import Tensor

if TYPE_CHECKING:
    pass


@runtime_checkable
class Played(Protocol):
    """What a decision maker has earned in t episodes, and what she would do now."""

    @property
    def rewards(self) -> Tensor: ...  # [R, t]

    @property
    def beside(self) -> Tensor: ...  # what each of M opponents got, and welfare [M + 1, R, t]; empty: not recorded

    @property
    def firsts(
        self,
    ) -> Tensor: ...  # share of moves that was action 0, hers and each opponent's [1 + M, R, t]; empty likewise

    @property
    def values(self) -> Tensor: ...  # [R, A] expected value of each of her actions in the present state

    @property
    def forecast(self) -> Tensor | None: ...  # [R, B] her belief about the opponents' next actions; None: she has none

    @property
    def beliefs(self) -> dict[str, Tensor]: ...  # scores of what she believes of her opponents [R]

    @property
    def s(self) -> Tensor: ...  # where the next episode begins [R, …]

    def values_at(self, s: Tensor) -> Tensor: ...  # ``values`` in states s [R, …]

    def policy_in(self, s: Tensor) -> Tensor: ...  # probabilities of her actions in states s [R, A]
