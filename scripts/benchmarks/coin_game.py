"""Seconds of 10,000 episodes of the coin game by compiled loops and by tensors, 5 seeds.

    python -m scripts.benchmarks coin_game

A level-2 thinker against a Q-learner, from fewer episodes.  Mean rewards of both engines must
agree."""

from __future__ import annotations

import time
from argparse import Namespace

from torch import Tensor

from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report
from scripts.benchmarks.workloads import component, load

MOST = 15.0  # seconds
KEYS = {"alpha": 0.01, "gamma": 0.99, "policy": "softmax", "temperature": 0.3}


def play(episodes: int, engine: str) -> tuple[float, Tensor]:
    """CPU seconds of 10,000 episodes, and rewards."""
    rng = Streams(0)
    problem = load("coin_game", 5, episodes=episodes, start="random")
    opponent = component("inference", "q_learning", **KEYS)
    problem.attacker = component("attacker", "learner", agent=opponent)
    keys = KEYS | {"alpha_opponent": 0.01, "policy_opponent": "softmax", "engine": engine}
    inference = component("inference", "level_k", **keys)
    state = inference.init(component("model", "q_linear").build(problem, rng), problem, rng)
    start = time.process_time()
    for _, episode in problem.batches("episode", rng, 0, episodes):
        state, _ = inference.step(state, episode, rng)
    seconds = (time.process_time() - start) * 10_000 / episodes
    return seconds, inference.posterior(state).rewards


def measure(options: Namespace, report: Report) -> None:
    for engine in ("compiled", "tensors"):
        play(20, engine)  # warm-up
    seconds, rewards = play(options.episodes, "compiled")
    slow, others = play(options.by_tensors, "tensors")
    means = {"compiled": rewards[:, : options.by_tensors].mean(1), "tensors": others.mean(1)}
    report.assert_equal_means(means, most=5.0)
    report.record("10,000 episodes in 15 s", [MOST / seconds])
    report.record("tensors", [slow / seconds])
