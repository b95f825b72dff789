"""ACRA on messages of the spam set."""

from __future__ import annotations

import warnings
from argparse import Namespace
from itertools import count
from typing import Any

import torch
from torch import Tensor

from components.attackers.attacked import Attacked
from components.errors import SimulatedDataWarning
from components.problems.supervised import Supervised
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report
from scripts.benchmarks.workloads import component, load
from scripts.peers.spam_loops import MessageLoops

# least and most words of a message: the loops' origins grow as their square
WORDS = (4, 12)
LARGEST = 60.0  # seconds that the whole test set may take


def learn(problem: Supervised, **keys: Any) -> tuple[Any, Any]:
    """ACRA and its posterior."""
    method, rng = component("inference", "acra", **keys), Streams(0)
    state = method.init(component("model", "naive_bayes").build(problem, rng), problem, rng)
    state, _ = method.step(state, problem.train, rng)
    return method, method.posterior(state)


def attack_spam(problem: Supervised) -> Tensor:
    """Short spam of the test set with the two words that make it look most innocent."""
    _, posterior = learn(problem)
    attack = component("attacker", "word_insertion", against="undefended")
    x, y = (part[problem.test.y[:, 0] == 1] for part in (problem.test.x, problem.test.y))
    messages = attack.perturb(Attacked(posterior, problem.bounds), x, y, Streams(0), 2)
    n_words = messages.sum(1)
    return messages[(n_words >= WORDS[0]) & (n_words <= WORDS[1])]


def compute_odds(posterior: Any, x: Tensor, seed: int) -> Tensor:
    """Odds of spam of all messages x [B, D] together, [B]."""
    with torch.no_grad():
        logits = posterior.predict(x, torch.Generator().manual_seed(seed)).logits[0, :, 0]
    return (logits[:, 1] - logits[:, 0]).exp()


def assert_equal(problem: Supervised, x: Tensor, rows: list[Any], report: Report) -> None:
    method, posterior = learn(problem, variance=0.0, draws=1)
    odds = compute_odds(posterior, x, 0)
    assert float(odds.min()) > 1e-30, "impossible messages agree under any sum"
    loops = MessageLoops(method, posterior, 0)
    for value, row in zip(odds, rows, strict=True):
        report.assert_close("odds, known attacker", value, loops.spam(row)[0], 1e-8)
    method, posterior = learn(problem)
    loops = MessageLoops(method, posterior, 1)
    for value, row in zip(compute_odds(posterior, x, 0).tolist(), rows, strict=True):
        ratio, variance = loops.spam(row)
        assert abs(value - ratio) < 5 * (2 * variance) ** 0.5, f"odds differ: {value}, {ratio}"


def measure(options: Namespace, report: Report) -> None:
    """ACRA on the spam set, n = 54 words and k <= 2 changed: vectorised sums over X' against loops.

        python -m scripts.benchmarks acra      # four attacked messages in loops, then the whole test set

    The loops go over every origin x in X' of a message, over every z that the attacker could have made
    of x, over its words, and over the K draws of (3.12), as Algorithm 3.1 is printed.  Both must agree:
    within rounding for a known attacker (variance 0), otherwise within five standard errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulatedDataWarning)  # the printed name says so
        problem = load("spambase")
    x = attack_spam(problem)[: options.messages]
    rows = [tuple(int(v) for v in row) for row in x.tolist()]
    assert_equal(problem, x, rows, report)
    method, posterior = learn(problem)
    seeds, loop_seeds = count(), count()

    def run_loops() -> list[Any]:
        loops = MessageLoops(method, posterior, next(loop_seeds))
        return [loops.spam(row) for row in rows]

    ways = {"ours": lambda: compute_odds(posterior, x, next(seeds)), "loops": run_loops}
    report.race("loops over X'", ways, options.repeats, warmups=0)
    ways = {"test set": lambda: compute_odds(posterior, problem.test.x, next(seeds))}
    seconds = report.time(ways, options.repeats, warmups=0)
    report.record("test set within a minute", LARGEST / seconds["test set"])
    report.facts |= {"data": problem.name, "messages": len(problem.test.x)}
