"""Independent Q-learners in the iterated prisoner's dilemma, against OpenSpiel's.

    python -m scripts.benchmarks.q_learners

Both learners have our defaults of α, γ and ε.  Ours play 1,000 games at once in the compiled loop,
OpenSpiel's one after the other.  Mean rewards of the five parts of a game must agree within four
standard errors.  Seconds are of a round."""

from __future__ import annotations

from argparse import Namespace

import numpy as np
from torch import Tensor

from scripts.benchmarks.game_runs import build_dilemma, learn
from scripts.benchmarks.harness import Benchmark, Measured, Option, Report
from scripts.benchmarks.workloads import component
from scripts.peers.open_spiel_learners import OpenSpielLearners

CASE = "1,000 games"
PARTS = 5
BENCHMARK = Benchmark(
    "q_learners",
    "OpenSpiel",
    {CASE: 400.0},
    rounds=Option(500, 20),
    games=Option(100, 10, "games of OpenSpiel's learners whose mean rewards are compared"),
    repeats=Option(5, 1),
)


def play(rounds: int) -> tuple[Tensor, float]:
    """Rewards [R, T] of the first of our learners, and seconds a round."""
    problem = build_dilemma(1000, rounds)
    return learn(problem, "q_table", rounds, method="q_learning")


def measure(options: Namespace, report: Report) -> None:
    rounds = options.rounds
    method = component("inference", "q_learning")
    peer = OpenSpielLearners(build_dilemma(1, rounds), method, rounds)
    theirs = np.stack([peer.play(seed) for seed in range(options.games)])
    samples = {"OpenSpiel": theirs, "ours": play(rounds)[0].numpy()}
    means = {name: x.reshape(len(x), PARTS, -1).mean(2) for name, x in samples.items()}
    report.assert_equal_means(means)
    ways = {"OpenSpiel": peer.measure_seconds, "ours": lambda: Measured(play(rounds)[1])}
    seconds = report.time(ways, options.repeats)
    report.compare(CASE, seconds["ours"], seconds["OpenSpiel"])


if __name__ == "__main__":
    BENCHMARK.run(measure)
