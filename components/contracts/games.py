"""Data exchanged between a game, the decision maker (actions a) and its opponents (threats b).

R replicates are played in parallel.  A state s is a row number of a table ([R] long), or any tensor
[R, …] for which the environment provides ``features``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

if TYPE_CHECKING:
    from components.contracts.capabilities.games import QFunction


class OpponentStatus(NamedTuple):
    """Opponents that took part in a move, and opponents that left the game with it."""

    present: Tensor  # [R, M] bool: the opponent was in the game and acted
    done: Tensor  # [R, M] bool: the move is terminal for the opponent


class Outcome(NamedTuple):
    """Outcome of a move."""

    r_a: Tensor  # the agent's reward [R]
    r_b: Tensor  # reward of each opponent, as the agent believes it to be [R, M]
    s_next: Tensor  # s' [R, …]
    done: Tensor | None  # [R] bool: s' is terminal; None if the game has no terminal states
    given: Tensor | None = (
        # [R] mean over the players of external payments, excluded from welfare; None means 0
        None
    )
    # [R] bool: the episode is truncated at s'; None means never
    truncated: Tensor | None = None
    # None if all opponents play until the decision maker's last move
    opponents: OpponentStatus | None = None


class Shown(NamedTuple):
    """The part of the decision maker's action that opponents see."""

    targets: Tensor  # weights on K targets [R, K]
    seen: Tensor | None  # [R] bool: False where they see nothing; None if visible in all replicates


@runtime_checkable
class Environment(Protocol):
    """The rules of a threatened Markov decision process, without internal state.

    Source: Gallego (2021), definition 4.1 and section 4.3.5."""

    @property
    def n_actions(self) -> int: ...  # A, of the agent

    @property
    def n_threats(self) -> tuple[int, ...]: ...  # B_1 … B_M of the M opponents

    @property
    def horizon(self) -> int: ...  # maximum number of moves in an episode

    @property
    def continuing(self) -> bool: ...  # True if episodes continue from the last state

    @property
    def device(self) -> torch.device: ...

    @property
    def dtype(self) -> torch.dtype: ...

    # initial states of an episode [R, …]
    def reset(self, replicates: int, generator: torch.Generator) -> Tensor: ...

    # a [R], b [R, M]
    def step(self, s: Tensor, a: Tensor, b: Tensor, generator: torch.Generator) -> Outcome: ...

    def observe(self, s: Tensor, a: Tensor) -> Shown: ...  # the part of action a that opponents see

    def features(self, s: Tensor) -> Tensor: ...  # of states, for approximators [R, F]


@runtime_checkable
class NumberedStates(Protocol):
    """An environment with the states 0 … n_states − 1, required by tables."""

    @property
    def n_states(self) -> int: ...


@runtime_checkable
class TabularGame(NumberedStates, Protocol):
    """A game with rewards and transitions in tables, which can be solved exactly."""

    reward_a: Tensor  # [S, A, B]
    reward_b: Tensor  # [S, A, B, M]
    transition: Tensor  # [S, A, B] long: s'
    ends: Tensor | None  # [S] bool; None if there are no terminal states
    start: int  # initial state of the first episode

    @property
    def n_threats(self) -> tuple[int, ...]: ...


@runtime_checkable
class TaxedEnvironment(Protocol):
    """An environment in which a third party chooses a tax rate and redistributes the players'
    rewards.

    Source: Gallego (2021), section 4.5.4."""

    # outcome of actions a [R], b [R, M], with rewards after tax at the rate [R]
    def after_tax(self, outcome: Outcome, a: Tensor, b: Tensor, rate: Tensor) -> Outcome: ...


@runtime_checkable
class ChangingEnvironment(Protocol):
    """An environment with rules that change from episode to episode."""

    def at(self, episode: int) -> Environment: ...  # the rules of an episode, from 0


@dataclass(frozen=True)
class Seat:
    """Information for a player, the decision maker or an opponent, before a game."""

    replicates: int
    own: int  # number of the player's actions
    # numbers of actions of the players that it faces: for an opponent, only the agent
    others: tuple[int, ...]
    targets: int  # K, number of targets on which an opponent sees the agent's action
    n_states: int | None  # None if states have no numbers
    device: torch.device
    dtype: torch.dtype
    environment: Environment  # the rules, for omniscient players
    # table or function of action values; learning players take fresh copies
    values: QFunction | None = None
    number: int | None = None  # index of an opponent, from 0; None means the decision maker

    @property
    def agent_actions(self) -> int:
        """Number of the decision maker's actions, for an opponent."""
        return self.others[0]

    def full(self, shape: tuple[int, ...], value: float) -> Tensor:
        """A tensor filled with one value."""
        return torch.full(shape, value, device=self.device, dtype=self.dtype)

    def rows(self, s: Tensor) -> Tensor:
        """Row numbers of states s [R, …], [R] long; 0 if states are not numbered."""
        if self.n_states is not None:
            return s
        return s.new_zeros(len(s), dtype=torch.long)


class Turn(NamedTuple):
    """Information for an opponent before a move.

    It holds the state of the game and, for omniscient opponents, the agent's policy.
    """

    s: Tensor  # [R, …]
    episode: int  # index of the episode, from 0
    # policy of the agent, s [R, …] -> probabilities of its actions [R, A]; None if not known
    policy: Callable[[Tensor], Tensor] | None


class Move(NamedTuple):
    """A move as observed by one opponent."""

    episode: int
    s: Tensor  # [R, …]
    a: Tensor  # action of the agent [R]
    shown: Tensor  # the agent's action on each target, weights [R, K]
    # [R] bool: False where the opponent saw nothing; None if visible in all replicates
    seen: Tensor | None
    b: Tensor  # action of the opponent [R]
    r: Tensor  # the opponent's reward [R]
    r_hers: Tensor  # reward of the agent [R]
    s_next: Tensor  # [R, …]
    # [R] bool: s_next is terminal for this opponent; None if there are no terminal states
    done: Tensor | None
    live: Tensor | None  # [R] bool: replicates where the opponent still plays; None means all
    cut: bool  # True if the horizon ends the episode here, in any state
    # [R] bool: the episode is truncated at s_next; None means nowhere
    truncated: Tensor | None = None
