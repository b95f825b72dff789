"""Decision makers supported by the compiled loop."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.costs.counts import count
from components.contracts.games import Environment
from components.contracts.roles import Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.games.action_values.q_table import ActionWeights
from components.games.agents.decision_maker import DecisionMaker
from components.games.agents.exploration import Decay, exploration_rate
from components.games.agents.player import Play, PlayerState
from components.games.agents.policies import PolicyName, check_finite, probabilities
from components.games.environments.coin_game import CoinEnvironment
from components.games.environments.episode import Episode
from components.games.environments.game import Game
from components.games.environments.table_environment import TableEnvironment
from components.games.fast.episodes import Tally, build_adversary, play_episode
from components.games.fast.minds import EPSILON_GREEDY, Levels, Scratch, constant
from components.games.fast.rules import build_rules
from components.games.fast.seats import CompiledPlayer, Hierarchy
from components.games.opponents.exponential_smoother import ExponentialSmoother
from components.games.opponents.fixed_policy import FixedPolicy
from components.games.opponents.learner import Learner, Learning
from components.games.opponents.tit_for_tat import TitForTat
from components.maths.compiled.loops import Array

K = TypeVar("K")
ONE_MIND: Array = np.empty((0, 0))  # no averaging


def is_compiled(game: Game, values: QFunction) -> bool:
    """True if the loop supports a game and action values of this type.

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
        is_met = isinstance(agent, CompilablePlayer) and agent.has_loop()
    else:
        is_met = type(opponent) in (ExponentialSmoother, FixedPolicy, TitForTat)
    return is_served and is_met and not others and isinstance(values, ActionWeights)


class CompiledGame:
    """A game and its players, with the arrays of the loop."""

    def __init__(self, game: Game, player: CompilablePlayer[Any], state: PlayerState[Any]) -> None:
        self.game = game
        continuing = game.environment.continuing
        self.agent = player.seat(state.mind, continuing)
        self.learner: CompiledPlayer | None = None
        opponent = game.opponents()[0]
        memory = state.standing.adversary
        if isinstance(opponent, Learner) and isinstance(memory, Learning):
            assert isinstance(opponent.agent, CompilablePlayer), (
                "``is_compiled`` is False for others"
            )
            self.learner = opponent.agent.seat(memory.mind, continuing)
        self.adversary = build_adversary(opponent, memory, game.environment)
        self.environment: Environment | None = None  # of the last episode
        n = max(game.n_actions, game.n_threats)
        marks = 1 if game.numbered else 4
        self.seed = torch.empty(1, dtype=torch.int64)  # drawn in each episode
        self.drawn: Array = self.seed.numpy().view(np.uint64)  # the same number
        self.moves: Array = np.zeros(game.replicates, np.int64)  # in the last episode
        self.scratch = Scratch(
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

    def play(self, episode: Episode, state: PlayerState[Any], rng: Rng) -> Info:
        """Play an episode and update the state and the players in place."""
        standing = state.standing
        environment = self.game.environment
        replicates = self.game.replicates
        agent = self.agent.at(episode.index)
        learner = agent if self.learner is None else self.learner.at(episode.index)
        current = self.game.rules_at(episode.index)
        if current is not self.environment:
            self.environment = current
            self.rules = build_rules(self.game, current)
        total = torch.empty(3, replicates, dtype=environment.dtype)
        firsts = torch.empty(2, replicates, dtype=environment.dtype)
        after = standing.s if environment.continuing else standing.s.clone()
        self.seed.random_(generator=rng.noise)
        tally = Tally(
            s=after.view(replicates, -1).numpy(),
            total=total.numpy(),
            firsts=firsts.numpy(),
            moves=self.moves,
        )
        play_episode(agent, self.adversary, learner, self.rules, self.drawn, tally, self.scratch)
        count(environment_steps=int(np.add.reduce(self.moves)))
        if not environment.continuing:
            after = environment.reset(replicates, rng.batches)
        return standing.close(after, total, firsts)


@dataclass
class CompiledPlayerState(PlayerState[K]):
    """State of a player in the compiled loop."""

    plays: CompiledGame | None = not_checkpointed()  # None before the first step


class CompilablePlayer(DecisionMaker[K], Generic[K]):
    """Agent with a policy derived from the values of its actions, ψ(s, ·), and with episodes in the
    compiled loop if ``is_compiled`` holds.

    The loop draws other random numbers than tensor operations, with the same distribution. It
    works on the tensors of the same state."""

    policy: PolicyName
    temperature: PositiveFloat

    # the loop implements this class; subclasses may have other rules
    in_loop: ClassVar[bool] = False

    def has_loop(self) -> bool:
        """True if the loop implements this agent with its keys."""
        return bool(vars(type(self)).get("in_loop"))

    @abstractmethod
    def thinkers(self, mind: K) -> Sequence[tuple[CompilableThinker, Hierarchy]]:
        """The agent for each possible level of the opponent, with its memory."""

    def times_right(self, mind: K) -> Tensor | None:
        """Number of correct forecasts of each thinker [R, m]; None for a single thinker."""
        return None

    def seat(self, mind: K, continuing: bool) -> CompiledPlayer:
        """The player's action values and constants for the loop."""
        thinkers = self.thinkers(mind)
        right = self.times_right(mind)
        return CompiledPlayer(
            [hierarchy for _, hierarchy in thinkers],
            ONE_MIND if right is None else right.numpy(),
            lambda episode: [thinker.levels(episode) for thinker, _ in thinkers],
            any(isinstance(value, Decay) for _, value in self),
            continuing,
        )

    def policy_at(self, mind: K, s: Tensor, episode: int) -> Tensor:
        epsilon = exploration_rate(self.epsilon, episode)
        return probabilities(self.think(mind, s, episode), self.policy, epsilon, self.temperature)

    def init(self, model: QFunction, problem: Game, rng: Rng) -> PlayerState[K]:
        playing = super().init(model, problem, rng)
        if self.has_loop() and is_compiled(problem, model):
            return CompiledPlayerState(playing.mind, playing.standing, None)
        return playing

    def step(self, state: PlayerState[K], batch: Episode, rng: Rng) -> tuple[PlayerState[K], Info]:
        if not isinstance(state, CompiledPlayerState):
            return super().step(state, batch, rng)
        if state.plays is None:
            assert isinstance(batch.game, Game)
            state.plays = CompiledGame(batch.game, self, state)
        return state, state.plays.play(batch, state, rng)

    def posterior(self, state: PlayerState[K]) -> Play:
        standing = state.standing
        announced = standing.game.announced_policy(standing, standing.episodes)
        if isinstance(state, CompiledPlayerState) and announced is not None:
            # the loop does not check policies
            check_finite(announced(standing.s), "attacker.agent")
        return super().posterior(state)


class CompilableThinker(CompilablePlayer[Hierarchy]):
    """A level-k thinker in the compiled loop, as an agent or as ``attacker.agent``."""

    def levels(self, episode: int) -> Levels:
        """Constants of an episode, by default of a level-1 thinker without forgetting."""
        return Levels(
            (self.alpha,),
            (exploration_rate(self.epsilon, episode),),
            (self.temperature if self.policy == "softmax" else EPSILON_GREEDY,),
            self.gamma,
            self.bootstrap_at_end,
            self.bootstrap_at_horizon,
        )

    def thinkers(self, mind: Hierarchy) -> Sequence[tuple[CompilableThinker, Hierarchy]]:
        return [(self, mind)]
