"""What a decision maker has seen after a move of a game."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor


@dataclass(slots=True)
class Transition:
    """What she has seen after a move, Algorithm 4.1 line 1: (s, a, b, r_A, r_B, s'), with the number of the joint action."""

    s: Tensor  # [R, …]
    a: Tensor  # [R]
    b: Tensor  # [R], the number of the opponents' joint action, the last opponent's running fastest
    each: Tensor  # [R, M], the action of each opponent
    r_a: Tensor  # [R]
    r_b: Tensor  # [R, M]
    s_next: Tensor  # [R, …]
    done: Tensor | None  # [R] bool: s' ends the episode; None: no state of this game does
    live: Tensor | None  # [R] bool: replicates whose episode was going on before the move; None: all
    cut: bool = False  # whether the horizon ends the episode here
    welfare: Tensor = field(default_factory=lambda: torch.zeros(()))  # social utility [R]

    def ending(self) -> Transition:
        """The same, told to those alone whose episode it ends at a true end."""
        ends = torch.zeros_like(self.a, dtype=torch.bool) if self.done is None else self.done
        return replace(self, live=ends if self.live is None else ends & self.live)

    def rate(self, alpha: float) -> float | Tensor:
        """A learning rate, 0 in replicates that no longer play."""
        return alpha if self.live is None else alpha * self.live.to(self.r_a.dtype)
