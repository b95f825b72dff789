"""Seconds of 10,000 episodes of the coin game by compiled loops and by tensors, 5 seeds.

    python -m scripts.benchmarks.coin_game

A level-2 thinker against a Q-learner, from fewer episodes.  Mean rewards of both must
agree."""

from __future__ import annotations

import time
from argparse import Namespace

from torch import Tensor

from components.games.agents.player import Player
from runner.execution.rng import Streams
from scripts.benchmarks.game_runs import assert_same_law
from scripts.benchmarks.harness import Benchmark, Option, Report
from scripts.benchmarks.workloads import component, load

MOST = 15.0  # seconds
KEYS = {"alpha": 0.01, "gamma": 0.99, "policy": "softmax", "temperature": 0.3}
BENCHMARK = Benchmark(
    "coin_game",
    "15 seconds; tensors",
    {"10,000 episodes in 15 s": 1.0},
    keep_memory=False,
    episodes=Option(1000, 60),
    by_tensors=Option(50, 20),
)


def play(episodes: int, tensors: bool = False) -> tuple[float, Tensor]:
    """CPU seconds of 10,000 episodes, and rewards."""
    rng = Streams(0)
    problem = load("coin_game", 5, episodes=episodes, start="random")
    opponent = component("inference", "q_learning", **KEYS)
    problem.attacker = component("attacker", "learner", agent=opponent)
    keys = KEYS | {"alpha_opponent": 0.01, "policy_opponent": "softmax"}
    inference = component("inference", "level_k", **keys)
    init = Player.init if tensors else type(inference).init
    state = init(inference, component("model", "q_linear").build(problem, rng), problem, rng)
    start = time.process_time()
    for _, episode in problem.batches("episode", rng, 0, episodes):
        state, _ = inference.step(state, episode, rng)
    seconds = (time.process_time() - start) * 10_000 / episodes
    return seconds, inference.posterior(state).rewards


def measure(options: Namespace, report: Report) -> None:
    for tensors in (False, True):
        play(20, tensors)  # warm-up
    seconds, rewards = play(options.episodes)
    slow, others = play(options.by_tensors, tensors=True)
    assert_same_law("coin game", [rewards[:, : options.by_tensors], others])
    report.record("10,000 episodes in 15 s", [MOST / seconds])
    report.record("tensors", [slow / seconds])


if __name__ == "__main__":
    BENCHMARK.run(measure)
