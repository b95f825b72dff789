"""Games of level-k thinkers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from components.games.agents.player import Player
from components.games.fast.engine import CompiledPlayerState
from runner.execution.rng import Streams
from scripts.benchmarks.workloads import component, load

NAMES = {"stateless": "friend_or_foe", "grid": "friend_or_foe_grid"}


def build_game(name: str, seeds: int, episodes: int) -> Any:
    problem = load(NAMES[name], seeds, episodes=episodes)
    problem.attacker = component("attacker", "exponential_smoother")
    return problem


def build_dilemma(seeds: int, rounds: int) -> Any:
    """The iterated prisoner's dilemma against a Q-learner."""
    problem = load("iterated_matrix", seeds, episodes=rounds)
    problem.attacker = component("attacker", "learner", agent=component("inference", "q_learning"))
    return problem


def learn(
    problem: Any,
    model: str,
    episodes: int,
    seed: int = 0,
    tensors: bool = False,
    method: str = "level_k",
    **keys: Any,
) -> tuple[Tensor, float]:
    """Rewards of an agent, and seconds a round, by compiled loops or by ``tensors``."""
    rng = Streams(seed)
    inference = component("inference", method, **keys)
    init = Player.init if tensors else type(inference).init
    state = init(inference, component("model", model).build(problem, rng), problem, rng)
    seconds, rounds = 0.0, 0
    for _, episode in problem.batches("episode", rng, 0, episodes):
        start = time.process_time()
        state, _ = inference.step(state, episode, rng)
        seconds += time.process_time() - start
        is_compiled = isinstance(state, CompiledPlayerState)  # counts rounds of the grid
        rounds += int(state.plays.moves.sum()) if is_compiled else problem.replicates
    return inference.posterior(state).rewards, seconds / rounds


def assert_same_law(name: str, rewards: Sequence[Tensor]) -> None:
    """Check that mean rewards of two ways of playing [R, T] agree within five standard errors.

    Raises:
        AssertionError: they do not.
    """
    per_seed = [r.mean(1) for r in rewards]
    means = [float(r.mean()) for r in per_seed]
    error = sum(float(r.var()) / len(r) for r in per_seed) ** 0.5
    assert abs(means[0] - means[1]) < 5 * error, f"{name}: they disagree, {means}"
