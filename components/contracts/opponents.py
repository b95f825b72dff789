"""Opponents in a game, and those that report their policy."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Protocol, runtime_checkable

from torch import Tensor
from typing_extensions import TypeVar

from components.contracts.games import Move, Seat, Turn
from components.contracts.requirements import Requirements
from components.contracts.roles import Component
from components.contracts.streams import Rng
from components.contracts.victim import Knowledge

S = TypeVar("S", default=Any)  # memory of an opponent


class Opponent(Component, Generic[S]):
    """A player that faces the decision maker in a game.

    The opponent's memory is part of the inference's state.

    Example:
        An opponent that repeats the agent's last action, for R = 2 replicates:

        >>> from types import SimpleNamespace
        >>> import torch
        >>> from components.contracts.opponents import Opponent
        >>> from runner.execution.rng import Streams
        >>> class Mirror(Opponent):
        ...     def reset(self, seat, rng):
        ...         return torch.zeros(seat.replicates, dtype=torch.long)
        ...
        ...     def act(self, state, turn, rng):
        ...         return state
        ...
        ...     def observe(self, state, move):
        ...         return move.a
        >>> opponent = Mirror(name="mirror")
        >>> rng = Streams(0)
        >>> state = opponent.reset(SimpleNamespace(replicates=2), rng)
        >>> opponent.act(state, None, rng)
        tensor([0, 0])
        >>> state = opponent.observe(state, SimpleNamespace(a=torch.tensor([1, 0])))
        >>> opponent.act(state, None, rng)
        tensor([1, 0])
    """

    action: ClassVar[str] = "adversary"
    requires = Requirements(kinds={"game"})
    follows_gradient: ClassVar[bool] = False
    knowledge: ClassVar[Knowledge] = "black box"
    # a third party has no seat and no opponents; its action is a tax rate
    third_party: ClassVar[bool] = False

    def assign_seats(self, seats: int) -> list[Opponent[Any]]:
        """Players of the opponents' seats.

        Args:
            seats: number of seats.

        Returns:
            A player for each seat: by default the opponent itself; several for a composed opponent.
        """
        return [self] * seats

    def reset(self, seat: Seat, rng: Rng) -> S:
        """The opponent's memory before the first episode.

        Args:
            seat: number of replicates R, and numbers of actions.
            rng: random streams of the replicate.

        Returns:
            The memory.

        Raises:
            ConfigMismatchError: the opponent cannot play in that seat.
        """
        raise NotImplementedError

    def act(self, state: S, turn: Turn, rng: Rng) -> Tensor:
        """The opponent's actions, chosen without knowledge of the decision maker's current action.

        Args:
            state: the opponent's memory.
            turn: state of the game s [R, …], and the number of the episode.
            rng: random streams; draws are from the stream ``attack`` only.

        Returns:
            Actions b [R] long; for a third party tax rates [R].
        """
        raise NotImplementedError

    def observe(self, state: S, move: Move) -> S:
        """The opponent's memory after a move.

        Args:
            state: memory before the move.
            move: actions and rewards [R], and the next state s' [R, …].

        Returns:
            The memory.
        """
        raise NotImplementedError


@runtime_checkable
class PolicyReporter(Protocol):
    """An opponent that can report its policy."""

    # probabilities of the opponent's actions in s [R, B]
    def policy_in(self, state: Any, s: Tensor, episode: int) -> Tensor: ...
