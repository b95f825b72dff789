"""State of a game between episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from components.contracts.games import Environment
from components.contracts.opponents import Opponent
from components.contracts.roles import Info
from components.contracts.states import not_checkpointed
from components.contracts.traces import Trace


class EpisodeGame(Protocol):
    """Interface of a game for its state, moves, scores and figures."""

    environment: Environment
    replicates: int
    tail: float  # final share of the episodes, for scores
    window: int  # episodes in a moving average
    counts: Literal["total", "last_move"]
    learns_from: Literal["every_move", "ends"]

    @property
    def best_guarantee(self) -> Tensor | None: ...  # of each state [S]; None if there are no tables

    def opponents(self) -> list[Opponent[Any]]: ...  # one per seat, and the third party

    def rules_at(self, episode: int) -> Environment: ...

    # replicates with at least one move [R] bool; None means all
    def is_unfinished(self, s: Tensor) -> Tensor | None: ...

    # policy of the first opponent
    def announced_policy(
        self, standing: GameState, episode: int
    ) -> Callable[[Tensor], Tensor] | None: ...


@dataclass(kw_only=True)
class GameState:
    """State of a game: the game's part of the state of an inference."""

    game: EpisodeGame = not_checkpointed()
    s: Tensor  # initial state of the next episode [R, …]
    adversary: object  # memory of the first opponent
    # reward of the agent and of each opponent, and welfare, a row [M + 2, R] per episode
    rewards: Trace = field(default_factory=Trace)
    episodes: int = 0  # number played so far
    others: list[object] = field(default_factory=list)  # memory of each further opponent
    # share of moves with action 0, of the agent and the opponents, rows [1 + M, R]
    firsts: Trace = field(default_factory=Trace)

    @property
    def rewards_so_far(self) -> Tensor:
        """Rewards of the episodes played so far [R, t]."""
        return self._stack(self.rewards)[0]

    @property
    def opponent_rewards(self) -> Tensor:
        """Reward of each opponent in the episodes, and welfare [M + 1, R, t]."""
        return self._stack(self.rewards)[1:]

    @property
    def first_actions(self) -> Tensor:
        """Share of action 0 among the moves of the agent and of each opponent [1 + M, R, t]."""
        return self._stack(self.firsts)

    def close(self, s: Tensor, total: Tensor, firsts: Tensor) -> Info:
        """End an episode: store the start of the next one and append rows to the traces.

        Return the agent's reward, the mean of the opponents' rewards, and welfare [R].
        """
        self.s = s
        reward, *others, welfare = total.unbind()
        self.rewards.append(total)
        self.firsts.append(firsts)
        self.episodes += 1
        return {
            "reward": reward,
            "reward_opponents": others[0] if len(others) == 1 else total[1:-1].mean(0),
            "social_utility": welfare,
        }

    def _stack(self, trace: Trace) -> Tensor:
        """Stack the rows of a trace along a new last axis; [1, R, 0] before the first row."""
        rules = self.game.environment
        if not len(trace):
            shape = (1, self.game.replicates, 0)
            return torch.empty(shape, device=rules.device, dtype=rules.dtype)
        return trace.stack_rows(2).to(rules.device)
