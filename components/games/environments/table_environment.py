"""Games with numbered states, and rewards and transitions in tables.

They are the fast path of small games.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from components.contracts.games import Outcome, Shown
from components.games.environments.transition import joint_action


@dataclass(frozen=True)
class TableEnvironment:
    """``Environment`` and ``NumberedStates`` of S states, A actions and B joint actions.

    The A actions are the agent's; the M opponents have B = ∏ B_m joint actions. The last
    opponent's action varies fastest in B. Transitions are deterministic; an episode begins
    in ``start``.
    """

    reward_a: Tensor  # [S, A, B]
    reward_b: Tensor  # [S, A, B, M] as believed by the agent
    transition: Tensor  # [S, A, B] long: s'
    n_threats: tuple[int, ...]  # B_1 … B_M
    # the agent's action as observed by opponents: weights on K targets [S, A, K]; zeros: hidden
    touches: Tensor
    ends: Tensor | None = None  # [S] bool: states that end an episode; None if no state does
    horizon: int = 1  # maximum number of moves in an episode
    continuing: bool = True  # an episode begins in the final state of the last one
    start: int = 0

    @property
    def n_states(self) -> int:
        return self.reward_a.shape[0]

    @property
    def n_actions(self) -> int:
        return self.reward_a.shape[1]

    @property
    def device(self) -> torch.device:
        return self.reward_a.device

    @property
    def dtype(self) -> torch.dtype:
        return self.reward_a.dtype

    @cached_property
    def _reward_b(self) -> Tensor:
        return self.reward_b.flatten(0, 2)  # [S·A·B, M]

    @cached_property
    def _flat_touches(self) -> Tensor:
        return self.touches.flatten(0, 1)  # [S·A, K]

    @cached_property
    def _observation_table(self) -> Tensor | None:
        is_observed = self._flat_touches.any(1)  # [S·A]
        return None if is_observed.all() else is_observed

    def reset(self, replicates: int, generator: torch.Generator) -> Tensor:
        """Return the first state, [R] long."""
        return torch.full((replicates,), self.start, device=self.device)

    def step(self, s: Tensor, a: Tensor, b: Tensor, generator: torch.Generator) -> Outcome:
        """Deterministic move; s and a [R], b [R, M]."""
        row = s * self.n_actions + a
        cell = row * self.reward_a.shape[2] + joint_action(b, self.n_threats)
        s_next = self.transition.take(cell)
        done = None if self.ends is None else self.ends.take(s_next)
        return Outcome(self.reward_a.take(cell), self._reward_b.index_select(0, cell), s_next, done)

    def observe(self, s: Tensor, a: Tensor) -> Shown:
        """Observation [R, K], and the replicates in which the action is observed."""
        row = s * self.n_actions + a
        return Shown(
            self._flat_touches.index_select(0, row),
            None if self._observation_table is None else self._observation_table.take(row),
        )

    def features(self, s: Tensor) -> Tensor:
        """One-hot states [R, S]."""
        return torch.nn.functional.one_hot(s, self.n_states).to(self.dtype)


def repeat_game(
    reward_a: Tensor, reward_b: Tensor, n_threats: tuple[int, ...], memory: int
) -> TableEnvironment:
    """Repeated game of simultaneous moves, one move per episode.

    The rewards are reward_a [A, B] and reward_b [A, B, M]. Without memory there is one
    state; with memory 1 the state is the number a·B + b of the joint action in the previous round,
    or A·B before the first. Opponents see the agent's action.
    """
    A, B = reward_a.shape
    start = memory * A * B
    states = start + 1
    pair = memory * torch.arange(A * B, device=reward_a.device).view(A, B)
    sees = torch.eye(A).to(reward_a)
    return TableEnvironment(
        reward_a=reward_a.expand(states, A, B).contiguous(),
        reward_b=reward_b.expand(states, *reward_b.shape).contiguous(),
        transition=pair.expand(states, A, B).contiguous(),
        n_threats=n_threats,
        touches=sees.expand(states, A, A).contiguous(),
        start=start,
    )
