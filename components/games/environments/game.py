"""Games between an agent (actions a) and its opponents (threats b).

Games are threatened Markov decision processes; the agent is the decision maker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.checks import NamedScores
from components.contracts.games import (
    ChangingEnvironment,
    Environment,
    NumberedStates,
    Seat,
    TabularGame,
    TaxedEnvironment,
)
from components.contracts.opponents import Opponent, PolicyReporter
from components.contracts.posteriors import Played
from components.contracts.problems import BatchKind, Kind
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.errors import ConfigMismatchError
from components.figures.attempts import draw_each
from components.games import game_scores as games
from components.games.environments.episode import Episode
from components.games.environments.standing import GameState
from components.games.equilibria.matrix_games import worst_case
from components.games.parallel.live_environment import LiveEnvironment

if TYPE_CHECKING:
    from components.figures.style import Figures


Drawing = Callable[["Game", Played], "Figures"]


@dataclass
class Game:
    """A threatened Markov decision process (S, A, B, T, R, p_A) with M opponents.

    R replicates are played in parallel.

    Source: Gallego (2021), definition 4.1 and section 4.3.5.
    """

    kind: Kind = field(default="game", init=False)
    name: str
    environment: Environment
    episodes: int  # number of episodes, one per step
    tail: float  # final share of the episodes, for scores
    window: int  # episodes in the moving average of the figure
    # return of an episode: all its moves, or only the last one
    counts: Literal["total", "last_move"] = "total"
    # moves for learning: all, or those to a terminal state
    learns_from: Literal["every_move", "ends"] = "every_move"
    figures: list[Drawing] = field(default_factory=list)
    replicates: int = 1
    attacker: Opponent | None = None
    # number of numbered states; 1 if states have no numbers: only approximators distinguish them
    n_states: int = field(init=False)
    numbered: bool = field(init=False)

    def __post_init__(self) -> None:
        # cached: a runtime protocol check takes half as long as a move
        self.numbered = isinstance(self.environment, NumberedStates)
        self.n_states = (
            self.environment.n_states if isinstance(self.environment, NumberedStates) else 1
        )
        self._changing = (
            self.environment if isinstance(self.environment, ChangingEnvironment) else None
        )
        self._taxed = isinstance(self.environment, TaxedEnvironment)
        self._may_begin_over = (
            self.environment if isinstance(self.environment, LiveEnvironment) else None
        )

    @property
    def n_actions(self) -> int:
        return self.environment.n_actions

    @property
    def n_threats(self) -> int:
        """Number of joint actions of the opponents."""
        return prod(self.environment.n_threats)

    def opponents(self) -> list[Opponent]:
        """Players of the seats, and a third party at the end, if any.

        Raises:
            ConfigMismatchError: the opponent is missing, or the opponents do not match the seats.
        """
        if self.attacker is None:
            raise ConfigMismatchError(
                "attacker: a game requires an adversary; add attacker=exponential_smoother"
            )
        seats = len(self.environment.n_threats)
        players = self.attacker.assign_seats(seats)
        playing = [player for player in players if not player.third_party]
        third = [player for player in players if player.third_party]
        if len(playing) != seats:
            raise ConfigMismatchError(
                f"attacker={self.attacker.name}: has {len(playing)} players for the {seats} seats of {self.name}"
            )
        if len(third) > self._taxed:
            capacity = "only one third party" if self._taxed else "no third party"
            raise ConfigMismatchError(
                f"attacker={self.attacker.name}: {self.name} supports {capacity}; remove {third[-1].name}"
            )
        return playing + third

    def seat(self, player: int | None, values: QFunction | None, targets: int = 0) -> Seat:
        """Information given to a player.

        The player is the agent (None), an opponent by number, or a third party (the number
        after the last).
        """
        environment = self.environment
        threats = self.environment.n_threats
        n_own = self.n_actions
        n_others = threats
        if player is not None:
            is_third_party = player == len(threats)
            n_own = 0 if is_third_party else threats[player]
            n_others = (self.n_actions, *threats) if is_third_party else (self.n_actions,)
        return Seat(
            replicates=self.replicates,
            own=n_own,
            others=n_others,
            targets=targets,
            n_states=self.n_states if self.numbered else None,
            device=environment.device,
            dtype=environment.dtype,
            environment=environment,
            values=values,
            number=player,
        )

    def rules_at(self, episode: int) -> Environment:
        """The rules of an episode, 0 the first."""
        return self.environment if self._changing is None else self._changing.at(episode)

    def announced_policy(
        self, standing: GameState, episode: int
    ) -> Callable[[Tensor], Tensor] | None:
        """Return the policy of the first opponent in an episode, s [R, …] -> probabilities [R, B].

        None if the opponent does not announce it.
        """
        player = self.opponents()[0]
        if not isinstance(player, PolicyReporter):
            return None
        return lambda s: player.policy_in(standing.adversary, s, episode)

    def opening(self, rng: Rng, values: QFunction | None = None) -> GameState:
        """State of the game before the first episode.

        Learning players store action values in the form of ``values``.
        """
        environment = self.environment
        r = self.replicates
        s = environment.reset(r, rng.batches)
        targets = environment.observe(
            s, torch.zeros(r, dtype=torch.long, device=environment.device)
        ).targets.shape[1]
        first, *others = [
            player.reset(self.seat(m, values, targets), rng)
            for m, player in enumerate(self.opponents())
        ]
        return GameState(
            game=self,
            s=s,
            adversary=first,
            others=others,
            rewards=Trace(expected=self.episodes),
            firsts=Trace(expected=self.episodes),
        )

    def is_unfinished(self, s: Tensor) -> Tensor | None:
        """Replicates with at least one move in the episode from s [R] bool; None for all of them."""
        if self._may_begin_over is None:
            return None
        over = self._may_begin_over.is_over(s)
        return ~over if bool(over.any()) else None

    def length(self, batch_kind: BatchKind) -> int | None:
        return self.episodes

    def batches(
        self, batch_kind: BatchKind, rng: Rng, start: int, stop: int
    ) -> Iterator[tuple[int, Episode]]:
        """Steps start+1 … stop, one episode each."""
        for step in range(start + 1, stop + 1):
            yield step, Episode(self, step - 1)

    def score(self, posterior: Played, rng: Rng) -> NamedScores:
        """Mean reward over the last episodes and total reward, [R] each, in units of reward.

        They are given for the agent, the opponents and welfare.
        """
        return games.score_play(self, posterior)

    @cached_property
    def best_guarantee(self) -> Tensor | None:
        """Best worst-case return of the agent from each state [S]; None if the game has no tables."""
        rules = self.environment
        if not isinstance(rules, TabularGame):
            return None
        return worst_case(rules.reward_a, rules.transition, rules.ends, None, rules.horizon)

    def draw(self, posterior: Played, rng: Rng) -> Figures:
        return draw_each(self.figures, self, posterior)

    def describe(self) -> dict[str, str]:
        """Facts for the terminal and the record."""
        environment = self.environment
        facts = {
            "data": self.name,
            "episodes": f"{self.episodes:,}",
            "states": f"{self.n_states}" if self.numbered else "not numbered",
            "actions × threats": " × ".join(
                str(n) for n in (self.n_actions, *environment.n_threats)
            ),
            "parallel replicates": f"{self.replicates}",
        }
        if environment.horizon > 1:
            facts["moves in an episode"] = f"at most {environment.horizon}"
        return facts
