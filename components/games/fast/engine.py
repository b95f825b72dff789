"""Decision makers supported by the compiled loop."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.costs.counts import count
from components.contracts.roles import Info
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.games.action_values.q_table import ActionWeights
from components.games.agents.decision_maker import ValueDecisionMaker
from components.games.agents.exploration import Decay, exploration_rate
from components.games.agents.player import Play, PlayerState
from components.games.agents.policies import check_finite
from components.games.environments.coin_game import CoinEnvironment
from components.games.environments.episode import Episode
from components.games.environments.game import Game
from components.games.environments.standing import GameState
from components.games.environments.table_environment import TableEnvironment
from components.games.fast.averaging import Minds
from components.games.fast.episodes import CompiledOpponent, Tally, build_adversary, play_episode
from components.games.fast.minds import EPSILON_GREEDY, Keys, Levels, Mind, Scratch, constant
from components.games.fast.rules import Rules, build_rules
from components.games.fast.seats import Seated
from components.games.opponents.exponential_smoother import ExponentialSmoother
from components.games.opponents.fixed_policy import FixedPolicy
from components.games.opponents.learner import Learner, Learning
from components.games.opponents.tit_for_tat import TitForTat
from components.maths.compiled.loops import Array

K = TypeVar("K")
ONE_MIND: Array = np.empty((0, 0))  # no averaging


def is_compiled(game: Game, values: list[QFunction]) -> bool:
    """True if the loop supports a game and action values of these types.

    Other games are played by tensor operations: those on an accelerator, with several opponents,
    with networks, of external programs, and tables in which episodes end but do not restart in the
    initial state."""
    environment = game.environment
    if isinstance(environment, TableEnvironment):
        is_served = environment.ends is None or not environment.continuing
    else:
        is_served = isinstance(environment, CoinEnvironment)
    is_served &= environment.device.type == "cpu"
    opponent, *others = game.opponents()
    if type(opponent) is Learner:
        agent = opponent.agent
        is_met = isinstance(agent, CompilableDecisionMaker) and agent.has_loop()
    else:
        is_met = type(opponent) in (ExponentialSmoother, FixedPolicy, TitForTat)
    return is_served and is_met and not others and all(isinstance(q, ActionWeights) for q in values)


class CompiledGame:
    """A game and its players, with the arrays of the loop."""

    def __init__(self, game: Game, agent: CompilablePlayer[Any], playing: PlayerState[Any]) -> None:
        self.game = game
        self.opponent = game.opponents()[0]
        self.agent = agent
        minds = agent.thinkers(playing.mind)
        self.seats = [
            thinker.seat(mind, game.environment.continuing, len(minds) == 1)
            for thinker, mind in minds
        ]
        self.learner: Seated | None = None
        memory = playing.standing.adversary
        if isinstance(memory, Learning) and isinstance(self.opponent, Learner):
            assert isinstance(self.opponent.agent, CompilableDecisionMaker), (
                "``is_compiled`` is False for others"
            )
            self.learner = self.opponent.agent.seat(memory.mind, game.environment.continuing)
        # the compiled opponent, and its source
        self.faced: tuple[object, Mind, CompiledOpponent] | None = None
        self.rules: dict[int, tuple[object, Rules]] = {}
        n = max(game.n_actions, game.n_threats)
        marks = 1 if game.numbered else 4
        self.seed = torch.empty(1, dtype=torch.int64)  # drawn in each episode
        self.drawn: Array = self.seed.numpy().view(np.uint64)  # the same number
        self.moves: Array = np.zeros(game.replicates, np.int64)  # in the last episode
        self.scratch = Scratch(
            q=np.zeros(game.n_actions * game.n_threats, self.seats[0].weights.dtype),
            psi=np.zeros(n),
            answer=np.zeros(n),
            mixed=np.zeros(n),
            guess=np.zeros(n),
            guess_at=np.zeros(n),
            before=np.zeros(marks, np.uint64),
            after=np.zeros(marks, np.uint64),
            stream=np.zeros(1, np.uint64),
            marks=constant(marks),
            shares=1 / np.maximum(np.arange(n + 1), 1),
            gains=np.zeros(3),
        )

    def _rules_at(self, episode: int) -> Rules:
        environment = self.game.rules_at(episode)
        # a reference to the environment keeps its id unique
        if id(environment) not in self.rules:
            self.rules[id(environment)] = (environment, build_rules(self.game, environment))
        return self.rules[id(environment)][1]

    def _adversary(self, memory: object, agent: Mind, episode: int) -> CompiledOpponent:
        mind = agent
        if self.learner is not None and isinstance(memory, Learning):
            mind = self.learner.build_mind(memory.mind, episode)
        if self.faced is None or self.faced[0] is not memory or self.faced[1] is not mind:
            self.faced = (
                memory,
                mind,
                build_adversary(self.opponent, memory, mind, self.game.environment),
            )
        return self.faced[2]

    def play(self, episode: Episode, standing: GameState, rng: Rng, mind: Any) -> Info:
        """Play an episode and update ``standing`` and the players in place."""
        environment = self.game.environment
        replicates = self.game.replicates
        right = self.agent.times_right(mind)
        seated = zip(self.seats, self.agent.thinkers(mind), strict=True)
        agent = Minds(
            tuple(seat.build_mind(part, episode.index) for seat, (_, part) in seated),
            ONE_MIND if right is None else right.numpy(),
        )
        total = torch.empty(3, replicates, dtype=environment.dtype)
        firsts = torch.empty(2, replicates, dtype=environment.dtype)
        after = standing.s if environment.continuing else standing.s.clone()
        self.seed.random_(generator=rng.noise)
        play_episode(
            agent,
            self._adversary(standing.adversary, agent.minds[0], episode.index),
            self._rules_at(episode.index),
            self.drawn,
            Tally(
                s=after.view(replicates, -1).numpy(),
                total=total.numpy(),
                firsts=firsts.numpy(),
                moves=self.moves,
            ),
            self.scratch,
        )
        count(environment_steps=int(np.add.reduce(self.moves)))
        if not environment.continuing:
            after = environment.reset(replicates, rng.batches)
        return standing.close(after, total, firsts)

    def check_learner(self, standing: GameState) -> None:
        """Check the policy of a learning opponent, as ``Learner.act`` does.

        Raises:
            NumericalError: action values diverged."""
        memory = standing.adversary
        if isinstance(self.opponent, Learner) and isinstance(memory, Learning):
            policy = self.opponent.policy_in(memory, standing.s, standing.episodes)
            check_finite(policy, "attacker.agent")


@dataclass
class CompiledPlayerState(PlayerState[K]):
    """Player state with the prepared arrays of the loop."""

    plays: CompiledGame = rebuilt()


class CompilablePlayer(ValueDecisionMaker[K], Generic[K]):
    """Agent with episodes in the compiled loop if ``is_compiled`` holds.

    The random numbers of the loop differ from those of tensor operations, with the same
    distribution. The loop works on the tensors of the same state."""

    @abstractmethod
    def has_loop(self) -> bool:
        """True if the loop implements this agent; subclasses may differ from it."""

    @abstractmethod
    def thinkers(self, mind: K) -> list[tuple[CompilableDecisionMaker[Any], Any]]:
        """The agent for each possible level of the opponent, with its memory."""

    def times_right(self, mind: K) -> Tensor | None:
        """Number of correct forecasts of each thinker [R, m]; None: there is one."""
        return None

    def init(self, model: QFunction, problem: Game, rng: Rng) -> PlayerState[K]:
        playing = super().init(model, problem, rng)
        if not self.has_loop():
            return playing
        values = [q for thinker, mind in self.thinkers(playing.mind) for q in thinker.tables(mind)]
        if not is_compiled(problem, values):
            return playing
        return CompiledPlayerState(
            playing.mind, playing.standing, CompiledGame(problem, self, playing)
        )

    def step(self, state: PlayerState[K], batch: Episode, rng: Rng) -> tuple[PlayerState[K], Info]:
        if not isinstance(state, CompiledPlayerState):
            return super().step(state, batch, rng)
        return state, state.plays.play(batch, state.standing, rng, state.mind)

    def posterior(self, state: PlayerState[K]) -> Play:
        if isinstance(state, CompiledPlayerState):
            state.plays.check_learner(state.standing)
        return super().posterior(state)


class CompilableDecisionMaker(CompilablePlayer[K], Generic[K]):
    """A level-k thinker in the compiled loop, as an agent or as ``attacker.agent``."""

    @abstractmethod
    def tables(self, mind: K) -> list[QFunction]:
        """Q_1 … Q_k; the last is the player's own."""

    def action_counts(self, mind: K) -> Tensor | None:
        """Counts of the level-1 thinker [R, S, n]; None: it expects one action."""
        return None

    def levels(self, episode: int) -> Levels:
        """Constants of an episode, by default of a level-1 thinker without forgetting."""
        epsilon = exploration_rate(self.epsilon, episode)
        return Levels((self.alpha,), (epsilon,), (self.policy_temperature,), self.shared_keys())

    def thinkers(self, mind: K) -> list[tuple[CompilableDecisionMaker[Any], Any]]:
        return [(self, mind)]

    def seat(self, mind: K, continuing: bool, alone: bool = True) -> Seated:
        """The player's action values and constants for the loop."""
        varies = any(isinstance(value, Decay) for _, value in self)
        return Seated(self.tables(mind), self.action_counts, self.levels, varies, continuing, alone)

    @property
    def policy_temperature(self) -> float:
        """Temperature of the player's own policy for ``Levels``."""
        return self.temperature if self.policy == "softmax" else EPSILON_GREEDY

    def shared_keys(self, forget: float = 1.0) -> Keys:
        """``Keys`` shared by all decision makers."""
        return Keys(forget, self.gamma, self.bootstrap_at_end, self.bootstrap_at_horizon)
