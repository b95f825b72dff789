"""Observation of the decision maker after a move."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from components.contracts.games import OpponentStatus


def both(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Return one & other; None counts as true everywhere."""
    if one is None:
        return other
    return one if other is None else one & other


def joint_action(each: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Number of the opponents' joint action, each [R, M] -> [R]; the last opponent's action varies
    fastest."""
    first, *others = each.unbind(1)
    for b, size in zip(others, sizes[1:], strict=True):
        first = first * size + b
    return first


@dataclass(slots=True)
class Transition:
    """Observation of the agent after a move, Algorithm 4.1 line 1: (s, a, b, r_A, r_B, s').

    b is the number of the joint action.
    """

    s: Tensor  # [R, …]
    a: Tensor  # [R]
    b: Tensor  # [R], the number of the opponents' joint action, the last opponent's varies fastest
    each: Tensor  # [R, M], the action of each opponent
    r_a: Tensor  # [R]
    r_b: Tensor  # [R, M]
    s_next: Tensor  # [R, …]
    done: Tensor | None  # [R] bool: s' ends the episode; None if no state of this game does
    # [R] bool: replicates with an unfinished episode before the move; None means all
    live: Tensor | None
    cut: bool = False  # whether the horizon ends the episode here
    welfare: Tensor = field(default_factory=lambda: torch.zeros(()))  # social utility [R]
    # [R] bool: the episode is truncated at s'; None means nowhere
    truncated: Tensor | None = None
    # None if opponents play as long as the decision maker does
    opponents: OpponentStatus | None = None

    @property
    def over(self) -> Tensor | None:
        """[R] bool: the episode ends with this move, in a terminal state or by truncation; None for
        nowhere.
        """
        if self.truncated is None:
            return self.done
        return self.truncated if self.done is None else self.done | self.truncated

    def opponent_transition(self, m: int) -> Transition:
        """Return the transition with the terminal states of opponent m.

        An episode that ends only for the decision maker is truncated for m.
        """
        opponent_ends = self.opponents
        if opponent_ends is None:
            return self
        done = opponent_ends.done[:, m]
        live = both(opponent_ends.present[:, m], self.live)
        truncated = None if self.over is None else self.over & ~done
        return replace(self, done=done, live=live, truncated=truncated)

    def acts(self) -> Tensor | None:
        """Activity of the decision maker [R], or also of the opponents [1 + M, R], in this move,
        bool; None if all act."""
        if self.opponents is None:
            return self.live
        present = self.opponents.present.T
        return both(torch.cat([torch.ones_like(present[:1]), present]), self.live)

    def ending(self) -> Transition:
        """Return the transition for only the replicates that reach a terminal state."""
        is_end = torch.zeros_like(self.a, dtype=torch.bool) if self.done is None else self.done
        return replace(self, live=both(is_end, self.live))

    def rate(self, alpha: float) -> float | Tensor:
        """Return the learning rate, 0 in finished replicates."""
        return alpha if self.live is None else alpha * self.live.to(self.r_a.dtype)
