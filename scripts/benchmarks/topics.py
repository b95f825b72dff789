"""Topics of bars against scikit-learn (mean field) and tomotopy (collapsed Gibbs).

    python -m scripts.benchmarks topics      # 1,000 documents of 100 words, ten topics

Mean field: ``lda_cavi``, four starts of 50 passes and one, against one start of scikit-learn.
Collapsed Gibbs: 200 sweeps of a cold chain of ``lda_collapsed_gibbs`` against tomotopy on one
thread, its priors fixed.  Held-out perplexities must be equal: of methods with one start the first
seed that does not stick is taken.  Both mean fields must give held-out documents the same
proportions at the same topics."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress
from functools import partial

from scripts.benchmarks import topic_runs as runs
from scripts.benchmarks.harness import Measured, Report
from scripts.benchmarks.workloads import load
from scripts.peers.installed import AbsentPeer
from scripts.peers.topic_models import (
    PASSES,
    SWEEPS,
    build_tomotopy,
    count_words,
    fit_scikit,
    normalise_topics,
)

PAIRS = (
    ("scikit-learn", "lda_cavi, four starts"),
    ("scikit-learn", "lda_cavi, one start"),
    ("tomotopy", "lda_collapsed_gibbs"),
)


def measure(options: Namespace, report: Report) -> None:
    problem = load("bars")
    table = count_words(problem.train, problem.n_words)
    gibbs = {"starts": 1, "heat": 1.0, "burn_in": SWEEPS}
    fit_cavi = partial(runs.fit_ours, problem, "lda_cavi", PASSES, K=runs.K)
    best = runs.evaluate(problem, fit_cavi(0))
    truth = runs.evaluate(problem, problem.truth.topics[0])
    assert abs(best - truth) < runs.ALIKE, f"lda_cavi has {best:.3f}, the truth {truth:.3f}"
    ways = {
        "lda_cavi, one start": partial(fit_cavi, starts=1),
        "scikit-learn": lambda seed: normalise_topics(fit_scikit(table, seed, runs.K)),
        "lda_collapsed_gibbs": partial(
            runs.fit_ours, problem, "lda_collapsed_gibbs", SWEEPS, K=runs.K, **gibbs
        ),
    }
    seeds = {name: runs.find_seed(way, problem, best) for name, way in ways.items()}
    runs.assert_equal_proportions(problem, fit_scikit(table, seeds["scikit-learn"], runs.K))
    timed = {"lda_cavi, four starts": partial(fit_cavi, 0)}
    timed |= {name: partial(way, seeds[name]) for name, way in ways.items()}
    with suppress(AbsentPeer):
        train = build_tomotopy(problem, runs.K, SWEEPS)
        seed = runs.find_seed(lambda seed: train(seed)[1], problem, best)
        timed["tomotopy"] = lambda: Measured(train(seed)[0])
    seconds = report.time(timed, options.repeats, warmups=0)
    for case, (peer, ours) in zip(report.goals, PAIRS, strict=True):
        if peer in seconds:
            report.compare(case, seconds[ours], seconds[peer])
