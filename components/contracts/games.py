"""What passes between a game, the decision maker (she, actions a) and her opponents (he, threats b).

R replicates are played at once.  A state s is the number of a row of a table [R] long, or any tensor [R, …] of which an
environment gives ``features``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

if TYPE_CHECKING:
    from components.contracts.capabilities.games import QFunction


class Outcome(NamedTuple):
    """What a move leads to."""

    r_a: Tensor  # her reward [R]
    r_b: Tensor  # that of each opponent, as she believes it to be [R, M]
    s_next: Tensor  # s' [R, …]
    done: Tensor | None  # [R] bool: s' ends the episode; None: no state of this game ends one


class Shown(NamedTuple):
    """What opponents see of an action of hers."""

    targets: Tensor  # weights on K targets [R, K]
    seen: Tensor | None  # [R] bool: whether they see anything; None: all replicates do


@runtime_checkable
class Environment(Protocol):
    """The rules of a threatened Markov decision process; it remembers nothing.

    Source: Gallego (2021), definition 4.1 and section 4.3.5."""

    @property
    def n_actions(self) -> int: ...  # A, hers

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

    def reset(self, replicates: int, generator: torch.Generator) -> Tensor: ...  # where an episode begins [R, …]

    def step(self, s: Tensor, a: Tensor, b: Tensor, generator: torch.Generator) -> Outcome: ...  # a [R], b [R, M]

    def shown(self, s: Tensor, a: Tensor) -> Shown: ...  # what opponents see of her action a

    def features(self, s: Tensor) -> Tensor: ...  # of states, for approximators [R, F]


@runtime_checkable
class NumberedStates(Protocol):
    """An environment whose states are the numbers 0 … n_states − 1: what tables need."""

    @property
    def n_states(self) -> int: ...


@runtime_checkable
class Taxed(Protocol):
    """An environment in which a third party, who chooses a number and no action, moves what players get between them.

    Source: Gallego (2021), section 4.5.4."""

    # rewards r_a [R], r_b [R, M] after a rate of tax [R]
    def after_tax(self, r_a: Tensor, r_b: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True)
class Seat:
    """What a player is told before a game begins: of the decision maker, or of one of her opponents."""

    replicates: int
    own: int  # number of his or her actions
    others: tuple[int, ...]  # of those of each of the others whom he or she faces: of an opponent, hers alone
    targets: int  # K, of which an opponent sees what she does
    n_states: int | None  # None: states have no numbers
    device: torch.device
    dtype: torch.dtype
    values: QFunction | None = None  # what action values are kept in, of which players who learn take fresh ones

    @property
    def hers(self) -> int:
        """Number of the decision maker's actions, as an opponent sees them."""
        return self.others[0]

    def rows(self, s: Tensor) -> Tensor:
        """Numbers of states s [R, …], 0 where they have none: [R] long."""
        if self.n_states is not None:
            return s
        return torch.zeros(len(s), dtype=torch.long, device=s.device)


class Move(NamedTuple):
    """A move as one opponent has seen it."""

    s: Tensor  # [R, …]
    a: Tensor  # hers [R]
    shown: Tensor  # what she did to each target, weights [R, K]
    seen: Tensor | None  # [R] bool: whether he saw anything of it; None: all replicates did
    b: Tensor  # his own [R]
    r: Tensor  # his reward [R]
    r_hers: Tensor  # hers [R]
    s_next: Tensor  # [R, …]
    done: Tensor | None  # [R] bool: s_next ends the episode; None: nothing does
    live: Tensor | None  # [R] bool: replicates that still play, the others are to be left alone; None: all do
    cut: bool  # whether the horizon ends the episode here, wherever it stands


class GameOnShow(Protocol):
    """What figures ask of a game."""

    @property
    def environment(self) -> Environment: ...

    @property
    def window(self) -> int: ...  # episodes in a moving average

    @property
    def replicates(self) -> int: ...
