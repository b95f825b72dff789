"""Independent Q-learners of OpenSpiel in a repeated game with two actions and a memory of one round.

OpenSpiel's learner draws its next action before it learns from the last round; ours learns first.

Source: Lanctot et al. (2019), OpenSpiel."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from components.games.environments.game import Game
from components.games.environments.table_environment import TableEnvironment
from scripts.benchmarks.harness import Measured
from scripts.peers.installed import peer_imports


class OpenSpielLearners:
    """Two learners with the keys of our ``q_learning``, in a game with our rewards."""

    def __init__(self, problem: Game, method: Any, rounds: int) -> None:
        with peer_imports():
            import pyspiel
            from open_spiel.python import rl_environment, rl_tools
            from open_spiel.python.algorithms import tabular_qlearner
        rules = problem.environment
        assert isinstance(rules, TableEnvironment)
        names = ["cooperate", "defect"]
        rewards = (rules.reward_a[0].tolist(), rules.reward_b[0, ..., 0].tolist())
        game = pyspiel.create_matrix_game("dilemma", "dilemma", names, names, *rewards)
        repeated = pyspiel.create_repeated_game(game, {"num_repetitions": rounds})
        self.environment = rl_environment.Environment(repeated)
        self.rounds = rounds
        self.method = method
        self.learner = tabular_qlearner.QLearner
        self.schedule = rl_tools.ConstantSchedule

    def play(self, seed: int = 0) -> np.ndarray[Any, np.dtype[Any]]:
        """Rewards [T] of the first learner in one game that starts with action values of 0."""
        np.random.seed(seed)  # the learners draw from NumPy's global generator
        method = self.method
        learners = [
            self.learner(
                player,
                2,
                step_size=method.alpha,
                epsilon_schedule=self.schedule(method.epsilon),
                discount_factor=method.gamma,
            )
            for player in range(2)
        ]
        moment = self.environment.reset()
        rewards = []
        while not moment.last():
            moment = self.environment.step([learner.step(moment).action for learner in learners])
            rewards.append(moment.rewards[0])
        return np.array(rewards)

    def measure_seconds(self) -> Measured:
        """Seconds per round."""
        start = time.process_time()
        self.play()
        return Measured((time.process_time() - start) / self.rounds)
