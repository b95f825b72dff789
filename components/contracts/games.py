"""What passes between a game, the decision maker (she, actions a) and her opponents (he, threats b).

R replicates are played at once.  A state s is the number of a row of a table [R] long, or any tensor [R, …] of which an
environment gives ``features``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor


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


@dataclass(frozen=True)
class Seat:
    """What an opponent is told before a game begins."""

    replicates: int
    own: int  # number of his actions
    hers: int  # number of her actions
    targets: int  # K, of which he sees what she does
    n_states: int | None  # None: states have no numbers
    device: torch.device
    dtype: torch.dtype


class Move(NamedTuple):
    """A move as one opponent has seen it."""

    s: Tensor  # [R, …]
    a: Tensor  # hers [R]
    shown: Tensor  # what she did to each target, weights [R, K]
    seen: Tensor | None  # [R] bool: whether he saw anything of it; None: all replicates did
    b: Tensor  # his own [R]
    r: Tensor  # his reward [R]
    s_next: Tensor  # [R, …]
    done: Tensor | None  # [R] bool: s_next ends the episode; None: nothing does
    live: Tensor | None  # [R] bool: replicates that still play, the others are to be left alone; None: all do


class GameOnShow(Protocol):
    """What figures ask of a game."""

    @property
    def environment(self) -> Environment: ...

    @property
    def window(self) -> int: ...  # episodes in a moving average

    @property
    def replicates(self) -> int: ...
