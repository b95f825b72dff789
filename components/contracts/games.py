"""Data exchanged by a game, the decision maker (actions a) and its opponents (threats b).

R replicates are played in parallel.  A state s is the number of a row of a table [R]
long, or any tensor [R, …] for which an environment gives ``features``.
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
    """Opponents that took part in a move, and those that ended their part in the game with it."""

    present: Tensor  # [R, M] bool: the opponent was in the game and acted
    done: Tensor  # [R, M] bool: a true end for the opponent: nothing comes after


class Outcome(NamedTuple):
    """Outcome of a move."""

    r_a: Tensor  # the agent's reward [R]
    r_b: Tensor  # reward of each opponent, as the agent believes it to be [R, M]
    s_next: Tensor  # s' [R, …]
    done: Tensor | None  # [R] bool: s' ends the episode; None: no state of this game ends one
    given: Tensor | None = (
        # [R] mean over the players of the amounts given from outside, which are no welfare; None: 0
        None
    )
    # [R] bool: the episode stops at s', though it could go on; None: never
    truncated: Tensor | None = None
    # None: all of them play as long as the decision maker does
    opponents: OpponentStatus | None = None


class Shown(NamedTuple):
    """The part of the decision maker's action that opponents see."""

    targets: Tensor  # weights on K targets [R, K]
    seen: Tensor | None  # [R] bool: whether they see anything; None: all replicates do


@runtime_checkable
class Environment(Protocol):
    """The rules of a threatened Markov decision process; it remembers nothing.

    Source: Gallego (2021), definition 4.1 and section 4.3.5."""

    @property
    def n_actions(self) -> int: ...  # A, the agent's

    @property
    def n_threats(self) -> tuple[int, ...]: ...  # B_1 … B_M of each of the M opponents

    @property
    def horizon(self) -> int: ...  # moves in an episode, at most

    @property
    def continuing(self) -> bool: ...  # True: an episode begins where the last one ended

    @property
    def device(self) -> torch.device: ...

    @property
    def dtype(self) -> torch.dtype: ...

    # where an episode begins [R, …]
    def reset(self, replicates: int, generator: torch.Generator) -> Tensor: ...

    # a [R], b [R, M]
    def step(self, s: Tensor, a: Tensor, b: Tensor, generator: torch.Generator) -> Outcome: ...

    def observe(self, s: Tensor, a: Tensor) -> Shown: ...  # the part of action a that opponents see

    def features(self, s: Tensor) -> Tensor: ...  # of states, for approximators [R, F]


@runtime_checkable
class NumberedStates(Protocol):
    """An environment with the states 0 … n_states − 1, as tables need."""

    @property
    def n_states(self) -> int: ...


@runtime_checkable
class TabularGame(NumberedStates, Protocol):
    """A game with its rewards and transitions in tables, which can be solved."""

    reward_a: Tensor  # [S, A, B]
    reward_b: Tensor  # [S, A, B, M]
    transition: Tensor  # [S, A, B] long: s'
    ends: Tensor | None  # [S] bool; None: no state ends an episode
    start: int  # where the first episode begins

    @property
    def n_threats(self) -> tuple[int, ...]: ...


@runtime_checkable
class TaxedEnvironment(Protocol):
    """An environment in which a third party, who chooses a number and no action, moves what players
    get between them.

    Source: Gallego (2021), section 4.5.4."""

    # outcome of a [R], b [R, M], with rewards after a rate of tax [R]
    def after_tax(self, outcome: Outcome, a: Tensor, b: Tensor, rate: Tensor) -> Outcome: ...


@runtime_checkable
class ChangingEnvironment(Protocol):
    """An environment with rules that change from episode to episode."""

    def at(self, episode: int) -> Environment: ...  # the rules of an episode, from 0


@dataclass(frozen=True)
class Seat:
    """Information for a player before a game: for the decision maker, or for an opponent."""

    replicates: int
    own: int  # number of the player's actions
    # numbers of actions of the others that the player faces: for an opponent, only the agent's
    others: tuple[int, ...]
    targets: int  # K, targets where an opponent sees the agent's action
    n_states: int | None  # None: states have no numbers
    device: torch.device
    dtype: torch.dtype
    environment: Environment  # the rules, for players that know everything
    # table or function of action values; players that learn take fresh copies
    values: QFunction | None = None
    number: int | None = None  # of an opponent, from 0; None: the decision maker

    @property
    def hers(self) -> int:
        """Number of the decision maker's actions, as an opponent sees them."""
        return self.others[0]

    def full(self, shape: tuple[int, ...], value: float) -> Tensor:
        """A tensor of one value."""
        return torch.full(shape, value, device=self.device, dtype=self.dtype)

    def rows(self, s: Tensor) -> Tensor:
        """Numbers of states s [R, …], 0 where they have none: [R] long."""
        if self.n_states is not None:
            return s
        return torch.zeros(len(s), dtype=torch.long, device=s.device)


class Turn(NamedTuple):
    """Information for an opponent before a move.

    It holds the state of the game and, for opponents that know everything, the policy.
    """

    s: Tensor  # [R, …]
    episode: int  # which it is, from 0
    # the agent's: s [R, …] -> probabilities of the agent's actions [R, A]; None: not known
    policy: Callable[[Tensor], Tensor] | None


class Move(NamedTuple):
    """A move as one opponent has seen it."""

    episode: int
    s: Tensor  # [R, …]
    a: Tensor  # the agent's [R]
    shown: Tensor  # the agent's action on each target, weights [R, K]
    seen: Tensor | None  # [R] bool: whether the opponent saw any of it; None: all replicates did
    b: Tensor  # the opponent's own [R]
    r: Tensor  # the opponent's reward [R]
    r_hers: Tensor  # the agent's [R]
    s_next: Tensor  # [R, …]
    done: Tensor | None  # [R] bool: s_next is a true end for this opponent; None: no state is
    live: (
        Tensor | None
    )  # [R] bool: replicates where the opponent still plays, skip the others; None: all
    cut: bool  # whether the horizon ends the episode here, in any state
    # [R] bool: the episode stops at s_next, though it could go on; None: nowhere
    truncated: Tensor | None = None
