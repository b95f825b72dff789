"""Perplexity of topics on film reviews at equal passes, three hold-outs, twenty topics; minutes.

    python -m scripts.benchmarks reviews

scikit-learn against ``lda_cavi`` with four starts and with one; ratios are of CPU time."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import Any

from torch import Tensor

from scripts.benchmarks.harness import Report
from scripts.benchmarks.topic_runs import evaluate, fit_ours
from scripts.benchmarks.workloads import load
from scripts.peers.topic_models import count_words, fit_scikit, normalise_topics


def measure(options: Namespace, report: Report) -> None:
    for seed in range(options.holdouts):
        problem = load("word_counts", seed=seed)
        table = count_words(problem.train, problem.n_words)
        fit = partial(fit_ours, problem, "lda_cavi", options.passes, seed, 20)
        ways = {
            "scikit-learn": lambda table=table, seed=seed: normalise_topics(
                fit_scikit(table, seed, 20, options.passes)
            ),
            "lda_cavi, four starts": fit,
            "lda_cavi, one start": partial(fit, starts=1),
        }

        def inspect(name: str, topics: Tensor, problem: Any = problem) -> None:
            print(f"{problem.name}, {name}: perplexity {evaluate(problem, topics):.1f}")

        seconds = report.time(ways, 1, warmups=0, inspect=inspect)
        for ours in list(ways)[1:]:
            report.compare(f"hold-out {seed}, {ours}", seconds[ours], seconds["scikit-learn"])
