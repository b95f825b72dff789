"""Record of play."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Play:
    """Results of an inference method after t episodes."""

    rewards: Tensor  # [R, t] the decision maker's
    # [M + 1, R, t] what each opponent got, and welfare; empty where it was not recorded
    beside: Tensor
    # [1 + M, R, t] share of her moves, and of each opponent's, that was action 0; empty likewise
    firsts: Tensor
    # [R, A] expected value ψ(s, a) of each of her actions in the present state, eq. (4.3)
    values: Tensor
    forecast: Tensor | None  # [R, B] her p_A(b|s); None when she forecasts nothing
    think: Callable[[Tensor], Tensor]  # s [R, …] -> ψ(s, ·) [R, A]
    beliefs: dict[str, Tensor]  # scores of what is believed of the others [R]
    policy: Callable[[Tensor], Tensor]  # s [R, …] -> probabilities of her actions [R, A]
    s: Tensor  # where the next episode begins [R, …]

    def values_at(self, s: Tensor) -> Tensor:
        """ψ(s, ·) [R, A] in states s [R, …]."""
        return self.think(s)

    def policy_in(self, s: Tensor) -> Tensor:
        """Probabilities of the agent's actions [R, A] in states s [R, …]."""
        return self.policy(s)
