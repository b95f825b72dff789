"""Games between an agent (actions a) and its opponents (threats b).

They are threatened Markov decision processes; the agent is the decision maker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Annotated, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.checks import check_shape
from components.contracts.games import (
    ChangingEnvironment,
    Environment,
    Move,
    NumberedStates,
    Outcome,
    Seat,
    TabularGame,
    TaxedEnvironment,
    Turn,
)
from components.contracts.opponents import Opponent, PolicyReporter
from components.contracts.posteriors import Played
from components.contracts.problems import BatchKind, Kind
from components.contracts.roles import AboveZeroToOne, Dataset, Setting
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.errors import ConfigMismatchError
from components.figures.attempts import draw_each
from components.games import game_scores as games
from components.games.environments.episode import Episode
from components.games.environments.live_environment import LiveEnvironment
from components.games.environments.standing import GameState
from components.games.environments.transition import Transition
from components.games.equilibria.matrix_games import worst_case
from components.games.figures import rewards

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Drawing = Callable[["Game", Played], "dict[str, Figure]"]


@dataclass
class Game:
    """A threatened Markov decision process (S, A, B, T, R, p_A) with M opponents.

    R replicates are played together.

    Source: Gallego (2021), definition 4.1 and section 4.3.5.
    """

    kind: Kind = field(default="game", init=False)
    name: str
    environment: Environment
    episodes: int  # to be played, one per step
    tail: float  # the last share of the episodes, which is scored
    window: int  # episodes in the moving average of the figure
    # value of an episode: all its moves, or only its last
    counts: Literal["total", "last_move"] = "total"
    # moves that the agent learns from: all moves, or moves to a true end
    learns_from: Literal["every_move", "ends"] = "every_move"
    figures: list[Drawing] = field(default_factory=list)
    replicates: int = 1
    attacker: Opponent | None = None
    n_states: int = field(
        init=False
    )  # of states that have numbers; 1 where they have none: only approximators distinguish them
    numbered: bool = field(init=False)

    def __post_init__(self) -> None:
        # Computed once: a runtime protocol check takes as long as half a move.
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
        self._safest: Tensor | None = None  # used at every evaluation, and always the same

    @property
    def n_actions(self) -> int:
        return self.environment.n_actions

    @property
    def n_threats(self) -> int:
        """Number of joint actions of the opponents."""
        return prod(self.environment.n_threats)

    def opponents(self) -> list[Opponent]:
        """Who plays each seat, and last the third party where there is one.

        Raises:
            ConfigMismatchError: nobody does, or there are more or fewer than seats.
        """
        if self.attacker is None:
            raise ConfigMismatchError(
                "attacker: a game needs an adversary; add attacker=exponential_smoother"
            )
        seats = len(self.environment.n_threats)
        players = self.attacker.assign_seats(seats)
        playing = [player for player in players if not player.third_party]
        third = [player for player in players if player.third_party]
        if len(playing) != seats:
            raise ConfigMismatchError(
                f"attacker={self.attacker.name}: {len(playing)} players for the {seats} seats of {self.name}"
            )
        if len(third) > self._taxed:
            capacity = "one third party alone" if self._taxed else "no third party"
            raise ConfigMismatchError(
                f"attacker={self.attacker.name}: {third[-1].name} is too many, {self.name} has room for {capacity}"
            )
        return playing + third

    def seat(self, player: int | None, values: QFunction | None, targets: int = 0) -> Seat:
        """Information given to a player.

        The player is the agent (None), an opponent by number, or a third party (the number
        after the last).
        """
        environment = self.environment
        threats = self.environment.n_threats
        n_actions = self.n_actions
        others = threats
        if player is not None:
            n_actions, others = (
                (threats[player], (n_actions,))
                if player < len(threats)
                else (0, (n_actions, *threats))
            )
        return Seat(
            replicates=self.replicates,
            own=n_actions,
            others=others,
            targets=targets,
            n_states=self.n_states if self.numbered else None,
            device=environment.device,
            dtype=environment.dtype,
            environment=environment,
            values=values,
            number=player,
        )

    def announced_policy(
        self, standing: GameState, episode: int
    ) -> Callable[[Tensor], Tensor] | None:
        """Policy of the first opponent in an episode, s [R, …] -> probabilities [R, B].

        None if the opponent does not announce it.
        """
        player = self.opponents()[0]
        if not isinstance(player, PolicyReporter):
            return None
        return lambda s: player.policy_in(standing.adversary, s, episode)

    def opening(self, rng: Rng, values: QFunction | None = None) -> GameState:
        """State of the game before the first episode.

        Players that learn keep action values in the same way as ``values`` are kept.
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
        rewards, other_rewards, firsts = (Trace(expected=self.episodes) for _ in range(3))
        return GameState(
            game=self,
            s=s,
            adversary=first,
            others=others,
            rewards=rewards,
            beside=other_rewards,
            firsts=firsts,
        )

    def is_unfinished(self, s: Tensor) -> Tensor | None:
        """Replicates with a first move to make in the episode from s [R] bool; None: all of
        them."""
        if self._may_begin_over is None:
            return None
        over = self._may_begin_over.is_over(s)
        return ~over if bool(over.any()) else None

    def move(
        self,
        standing: GameState,
        turn: Turn,
        a: Tensor,
        live: Tensor | None,
        rng: Rng,
        *,
        cut: bool = False,
    ) -> Transition:
        """Play one move, given the agent's action a [R].

        Each opponent chooses without seeing a, and remembers its own observation; ``cut``: the
        horizon ends the episode here. A third party's rate of tax is applied to all rewards.
        """
        rules = self.environment
        players = self.opponents()
        seats = len(self.environment.n_threats)
        environment = rules if self._changing is None else self._changing.at(turn.episode)
        memories = [standing.adversary, *standing.others]
        actions = [
            player.act(memory, turn, rng) for player, memory in zip(players, memories, strict=True)
        ]
        acting = actions[:seats]
        each = acting[0].unsqueeze(1) if seats == 1 else torch.stack(acting, 1)  # [R, M]
        outcome = environment.step(turn.s, a, each, rng.batches)
        welfare = self.welfare(outcome)
        if len(actions) > seats:
            assert isinstance(environment, TaxedEnvironment), (
                "no third party finds a seat elsewhere"
            )
            outcome = environment.after_tax(outcome, a, each, actions[-1])
        gains = [*outcome.r_b.unbind(1), welfare]  # a third party's is the welfare
        targets, is_observed = environment.observe(turn.s, a)
        joint = acting[0]
        for m in range(1, seats):
            joint = joint * environment.n_threats[m] + acting[m]
        transition = Transition(
            s=turn.s,
            a=a,
            b=joint,
            each=each,
            r_a=outcome.r_a,
            r_b=outcome.r_b,
            s_next=outcome.s_next,
            done=outcome.done,
            live=live,
            cut=cut,
            welfare=welfare,
            truncated=outcome.truncated,
            opponents=outcome.opponents,
        )
        after = []
        for m, (player, memory, b, r) in enumerate(
            zip(players, memories, actions, gains, strict=False)
        ):
            side = transition.opponent_transition(m) if m < seats else transition
            visible = is_observed
            if side.live is not None:
                visible = side.live if is_observed is None else is_observed & side.live
            move = Move(
                episode=turn.episode,
                s=turn.s,
                s_next=outcome.s_next,
                a=a,
                r_hers=outcome.r_a,
                b=b,
                r=r,
                shown=targets,
                seen=visible,
                done=side.done,
                live=side.live,
                cut=cut,
                truncated=side.truncated,
            )
            after.append(player.observe(memory, move))
        standing.adversary, *standing.others = after
        return transition

    @staticmethod
    def welfare(outcome: Outcome) -> Tensor:
        """Social utility SU = (r_A + Σ_m r_B^m)/(M + 1) less what came from outside, eq. (4.4):
        taxes leave it as it is [R]."""
        mean = (outcome.r_a + outcome.r_b.sum(1)) / (1 + outcome.r_b.shape[1])
        return mean if outcome.given is None else mean - outcome.given

    def length(self, batch_kind: BatchKind) -> int | None:
        return self.episodes

    def batches(
        self, batch_kind: BatchKind, rng: Rng, start: int, stop: int
    ) -> Iterator[tuple[int, Episode]]:
        """Steps start+1 … stop, one episode each."""
        for step in range(start + 1, stop + 1):
            yield step, Episode(self, step - 1)

    def score(self, posterior: Played, rng: Rng) -> dict[str, Tensor | float]:
        """Mean reward over the last episodes and total reward, [R] each, in units of reward.

        They are given for the agent, the opponents and welfare.
        """
        check_shape("the rewards", posterior.rewards, self.replicates, None)
        scores = games.scores(posterior.rewards, self.tail, self.window)
        if posterior.beside.numel():
            scores |= games.score_opponents(posterior.beside, self.tail, self.window)
        if posterior.firsts.numel():
            scores |= games.frequencies(posterior.firsts, self.tail)
        exploitability = self.exploitability(posterior)
        if exploitability is not None:
            scores["exploitability"] = exploitability
        scores |= posterior.beliefs
        return {
            name: value if self.replicates > 1 else float(value) for name, value in scores.items()
        }

    def exploitability(self, posterior: Played) -> Tensor | None:
        """Exploitability of the agent's current policy [R], in units of reward per episode.

        The opponents know the policy and are adversarial.

        max_p min_b E[Σ r_A] − min_b E_π[Σ r_A] ≥ 0 from the start of the next episode; all
        opponents are treated as one, and taxes and incentives are left out. None where the game
        has no tables.

        Source: Johanson, Waugh, Bowling and Zinkevich (2011); Shapley (1953) for the game's
        value.
        """
        game = self.environment
        if not isinstance(game, TabularGame):
            return None
        if self._safest is None:
            self._safest = worst_case(
                game.reward_a, game.transition, game.ends, None, self.environment.horizon
            )
        states = torch.arange(game.n_states, device=self.environment.device)
        # [R, S, A]
        policy = torch.stack([posterior.policy_in(s.expand(self.replicates)) for s in states], 1)
        least = worst_case(
            game.reward_a, game.transition, game.ends, policy, self.environment.horizon
        )
        return self._safest[posterior.s] - least.gather(1, posterior.s.unsqueeze(1)).squeeze(1)

    def draw(self, posterior: Played, rng: Rng) -> dict[str, Figure]:
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
            "replicates at once": f"{self.replicates}",
        }
        if environment.horizon > 1:
            facts["moves in an episode"] = f"at most {environment.horizon}"
        return facts


class GameDataset(Dataset[Game]):
    """A game with a number of episodes; ``load`` of a subclass calls ``build_game``."""

    kind = "game"
    length_key = "episodes"
    vectorised = True

    episodes: PositiveInt
    tail: AboveZeroToOne
    window: PositiveInt

    def build_game(
        self,
        environment: Environment,
        setting: Setting,
        counts: Literal["total", "last_move"] = "total",
        learns_from: Literal["every_move", "ends"] = "every_move",
        figures: Sequence[Drawing] = (),
    ) -> Game:
        """The game of these rules, with the figure of rewards before the others."""
        return Game(
            name=self.name,
            environment=environment,
            episodes=self.episodes,
            tail=self.tail,
            window=self.window,
            counts=counts,
            learns_from=learns_from,
            figures=[rewards.draw, *figures],
            replicates=setting.replicates,
        )


class Dilemma(GameDataset):
    """A game of two actions with payoffs T, R, P and S, and the memory of a round or none."""

    T: float
    R: float
    P: float
    S: float
    memory: Annotated[int, Field(ge=0, le=1)]
