"""Games with action values linear in a few marks, played by compiled loops.

The loops work on the tensors of an ordinary state.  Between the loops PyTorch turns
expected values into policies, for all replicates together: no other exp matches its
last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.action_values.q_linear import LinearValues
from components.games.environments.coin_game import CoinEnvironment
from components.games.environments.episode import Episode
from components.games.environments.game import Game
from components.games.environments.standing import GameState
from components.games.fast import coins, marks
from components.games.fast.arithmetic import FEW
from components.games.fast.thinkers import CompilablePlayer, Levels
from components.games.opponents.learner import Learner, Learning
from components.maths.compiled.loops import Array
from components.maths.policies import Ties, probabilities


def fitting(game: Game, where: str) -> None:
    """Check that a loop exists for linear action values of this game.

    Raises:
        Misfit: no loop exists for the game or the opponent.
    """
    if not isinstance(game.environment, CoinEnvironment):
        raise ConfigMismatchError(
            f"{where}: of linear action values it plays dataset=coin_game alone; engine=tensors plays dataset={game.name}"
        )
    (player,) = game.opponents()
    agent = player.agent if isinstance(player, Learner) else None
    if not isinstance(agent, CompilablePlayer):
        description = player.name if agent is None else f"learner attacker.agent={agent.name}"
        raise ConfigMismatchError(
            f"{where}: with linear action values it plays against attacker=learner of q_learning, fpq_learning or level_k, "
            f"here attacker={description}; engine=tensors plays all"
        )
    if key := agent.unsupported_option(True):
        raise ConfigMismatchError(
            f"{where}: has no loop with attacker.agent of {key}; use engine=tensors"
        )


class Side:
    """One of the two players during an episode: views of its tensors, and buffers.

    Twins: ``policy_at`` and ``learn`` of q_learning, fpq_learning and level_k.
    """

    def __init__(self, values: list[QFunction], counts: Tensor | None, known: Levels):
        self.known = known
        self.counts = counts
        linear = [q for q in values if isinstance(q, LinearValues)]
        self.weights = [q.weights.numpy() for q in linear]
        top = linear[-1].weights
        self.dtype: type[np.floating] = self.weights[-1].dtype.type
        self.psi = [top.new_empty(len(top), q.own) for q in linear]
        self.held = [psi.numpy() for psi in self.psi]
        # belief about an opponent with one action
        self.first = np.ones((len(top), linear[0].other), self.dtype)
        self.counted = np.empty(0, self.dtype) if counts is None else counts.view(-1).numpy()
        self.rates = [np.array([alpha, known.gamma]).astype(self.dtype) for alpha in known.alphas]
        self.forget = np.array([known.forget]).astype(self.dtype)
        self.room = np.empty(FEW * FEW, self.dtype), *(np.empty(FEW, self.dtype) for _ in range(3))

    def _answer(self, j: int, places: Array, counts: bool, believed: Array) -> Tensor:
        """The policy [R, own] of the player of level j + 1."""
        levels = self.known
        marks.weighing()(
            self.weights[j], places, self.counted, counts, believed, self.held[j], *self.room
        )
        temperature = levels.temperatures[j]
        if temperature is not None:
            return probabilities(self.psi[j], "softmax", 0.0, temperature)
        return probabilities(
            self.psi[j], "epsilon_greedy", levels.epsilons[j], 1.0, get_args(Ties)[levels.ties]
        )

    def policy(self, places: Array) -> Array:
        """Probabilities of own actions [R·A]."""
        believed = self.first
        counts = self.counts is not None
        for j in range(len(self.weights)):
            believed = self._answer(j, places, counts, believed).numpy()
            counts = False
        return believed.reshape(-1)

    def learn(
        self,
        places: Array,
        after: Array,
        own: Array,
        other: Array,
        r: Array,
        r_other: Array,
        last: bool,
    ) -> None:
        """A move: own and the other's actions and rewards [R]; ``last``: the horizon cuts the
        episode short here."""
        k = len(self.weights)
        levels = self.known
        believed = self.first
        counts = self.counts is not None
        on = levels.bootstraps_horizon or not last
        answer_places = after if levels.at_next else places
        if counts:
            marks.compile_notice()(
                self.counted, other if k % 2 == 1 else own, self.forget, self.room[-1]
            )
        for j in range(k):
            acts, others, gains = (own, other, r) if (k - 1 - j) % 2 == 0 else (other, own, r_other)
            marks.compile_teach()(
                self.weights[j],
                places,
                after,
                self.counted,
                counts,
                believed,
                acts,
                others,
                gains,
                self.rates[j],
                on,
                *self.room,
            )
            if j < k - 1:
                believed = self._answer(j, answer_places, counts, believed).numpy()
                counts = False


@dataclass
class CompiledLinearGame:
    """Room for the moves of a game."""

    game: Game

    def __post_init__(self) -> None:
        environment = self.game.environment
        r = self.game.replicates
        assert isinstance(environment, CoinEnvironment), "so says ``fitting``"
        (player,) = self.game.opponents()
        assert isinstance(player, Learner), "so says ``fitting``"
        assert isinstance(player.agent, CompilablePlayer), "so says ``fitting``"
        self.environment = environment
        self.agent = player.agent
        self.dtype: type[np.floating] = np.empty(
            0, str(environment.dtype).removeprefix("torch.")
        ).dtype.type
        self.share = np.array([*environment.share, 0.5], self.dtype)
        self.u, self.v = torch.empty(2, environment.horizon * r, dtype=environment.dtype)
        self.places, self.after, (self.a, self.b) = (
            np.empty((r, 4), int),
            np.empty((r, 4), int),
            np.empty((2, r), int),
        )
        self.gains, self.edge = np.empty((2, r), self.dtype), np.empty(1, self.dtype)

    def play(
        self,
        episode: Episode,
        standing: GameState,
        rng: Rng,
        values: list[QFunction],
        counts: Tensor | None,
        known: Levels,
    ) -> Info:
        """The twin of ``Episode.play``."""
        environment = self.environment
        a = self.a
        b = self.b
        places = self.places
        after = self.after
        state = standing.adversary
        assert isinstance(state, Learning), "so are the memories of learners"
        agent = self.agent
        mind = state.mind
        agent_side = Side(values, counts, known)
        opponent_side = Side(
            agent.tables(mind), agent.action_counts(mind), agent.levels(episode.index)
        )
        s = standing.s.numpy().copy()
        size = environment.size
        horizon = environment.horizon
        total = np.zeros((3, len(s)), self.dtype)
        tally = np.zeros((2, len(s)), self.dtype)
        self.u.uniform_(generator=rng.noise)
        self.v.uniform_(generator=rng.attack)
        u = self.u.numpy()
        v = self.v.numpy()
        gains = self.gains
        coins.opening()(s, size, places)
        for step in range(horizon):
            agent_policy = agent_side.policy(places)
            opponent_policy = opponent_side.policy(places)
            last = step == horizon - 1
            coins.moving()(
                s,
                size,
                self.share,
                agent_policy,
                opponent_policy,
                u,
                v,
                step,
                after,
                a,
                b,
                gains,
                total,
                tally,
                self.edge,
            )
            opponent_side.learn(places, after, b, a, gains[1], gains[0], last)
            agent_side.learn(places, after, a, b, gains[0], gains[1], last)
            places, after = after, places
        after_it = environment.reset(len(s), rng.batches)
        return standing.close(
            after_it, torch.from_numpy(total), torch.from_numpy(tally / self.dtype(horizon))
        )
