"""Benchmark of topic models."""

from __future__ import annotations

import time
import warnings
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from sklearn.decomposition import LatentDirichletAllocation
from torch import Tensor

from components.contracts.problems import Counts
from components.topics.corpus import Corpus, Topics
from components.topics.topic_scores import completion, perplexity, proportions
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Measured, Report
from scripts.benchmarks.workloads import component, load, train
from scripts.peers.installed import AbsentPeer, peer_imports

PASSES = 50
SWEEPS = 200
PRIOR = 0.1
K = 10  # topics
ALIKE = 0.05  # largest difference of perplexities of equal results
PAIRS = (
    ("scikit-learn", "lda_cavi, four starts"),
    ("scikit-learn", "lda_cavi, one start"),
    ("tomotopy", "lda_collapsed_gibbs"),
)


def count_words(documents: Counts, n_words: int) -> Any:
    table = torch.zeros(documents.n_rows, n_words, dtype=torch.float64)
    return table.index_put((documents.rows, documents.words), documents.counts.double()).numpy()


def fit_scikit(table: Any, seed: int) -> LatentDirichletAllocation:
    return LatentDirichletAllocation(
        K,
        doc_topic_prior=PRIOR,
        topic_word_prior=PRIOR,
        max_iter=PASSES,
        evaluate_every=-1,
        random_state=seed,
    ).fit(table)


def normalise_topics(fitted: LatentDirichletAllocation) -> Tensor:
    lam = torch.from_numpy(fitted.components_)
    return lam / lam.sum(1, keepdim=True)


def build_tomotopy(problem: Corpus) -> Callable[[int], tuple[float, Tensor]]:
    """CPU seconds of training, and topics [K, V], of tomotopy with a seed."""
    with peer_imports():
        import tomotopy

    words = problem.train.words.repeat_interleave(problem.train.counts)
    documents = [[str(w) for w in row.tolist()] for row in words.split(100)]

    def run(seed: int) -> tuple[float, Tensor]:
        model = tomotopy.LDAModel(k=K, alpha=PRIOR, eta=PRIOR, seed=seed + 1)
        for document in documents:
            model.add_doc(document)
        model.optim_interval = 0
        model.burn_in = 0
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.train(SWEEPS, workers=1)
        seconds = time.process_time() - start
        topics = torch.zeros(K, problem.n_words, dtype=torch.float64)
        columns = [int(word) for word in model.used_vocabs]
        for k in range(K):
            topics[k, columns] = torch.tensor(model.get_topic_word_dist(k)).double()
        return seconds, topics

    return run


def evaluate(problem: Corpus, topics: Tensor) -> float:
    """Perplexity of topics [K, V] by the problem's evaluation."""
    posterior = Topics(topics[None], torch.full((len(topics),), PRIOR, dtype=torch.float64))
    return perplexity(completion(posterior, problem.seen, problem.held), problem.held)


def fit_ours(problem: Corpus, name: str, steps: int, seed: int, **keys: Any) -> Tensor:
    """Last draw of topics [K, V] after a number of steps."""
    rng = Streams(seed)
    inference = component("inference", name, **keys)
    model = component("model", "lda", n_topics=K, alpha=PRIOR, eta=PRIOR).build(problem, rng)
    return inference.posterior(train(inference, model, problem, rng, steps)).topics[-1]


def find_seed(way: Any, problem: Corpus, best: float) -> int:
    """First of 20 seeds with a perplexity within ``ALIKE`` of the best."""
    for seed in range(20):
        if abs(evaluate(problem, way(seed)) - best) < ALIKE:
            return seed
    raise AssertionError(f"no seed reaches {best:.3f}")


def assert_equal_proportions(problem: Corpus, fitted: Any) -> None:
    theirs = torch.from_numpy(fitted.transform(count_words(problem.test, problem.n_words)))
    lam = torch.from_numpy(fitted.components_)
    weights = (lam.digamma() - lam.sum(1, keepdim=True).digamma()).exp()
    mine = proportions(problem.test, weights, torch.full((K,), PRIOR, dtype=torch.float64))
    distance = float((0.5 * (mine - theirs).abs().sum(1)).median())
    assert distance < 1e-3, f"proportions of held-out documents differ by {distance:.1e}"


def measure(options: Namespace, report: Report) -> None:
    """Topics of bars against scikit-learn (mean field) and tomotopy (collapsed Gibbs).

        python -m scripts.benchmarks topics      # 1,000 documents of 100 words, ten topics

    Mean field: ``lda_cavi`` with four starts and with one start of 50 passes, against one start of
    scikit-learn.  Collapsed Gibbs: 200 sweeps of one chain of ``lda_collapsed_gibbs`` against tomotopy
    on one thread with fixed priors.  Held-out perplexities must be equal: for methods with one start
    the first seed that avoids a local optimum is used.  Both mean fields must give held-out documents
    the same proportions for the same topics."""
    problem = load("bars")
    table = count_words(problem.train, problem.n_words)
    gibbs = {"starts": 1, "heat": 1.0, "burn_in": SWEEPS}
    fit_cavi = partial(fit_ours, problem, "lda_cavi", PASSES)
    best = evaluate(problem, fit_cavi(0))
    truth = evaluate(problem, problem.truth.topics[0])
    assert abs(best - truth) < ALIKE, f"lda_cavi has {best:.3f}, the truth {truth:.3f}"
    ways = {
        "lda_cavi, one start": partial(fit_cavi, starts=1),
        "scikit-learn": lambda seed: normalise_topics(fit_scikit(table, seed)),
        "lda_collapsed_gibbs": partial(fit_ours, problem, "lda_collapsed_gibbs", SWEEPS, **gibbs),
    }
    seeds = {name: find_seed(way, problem, best) for name, way in ways.items()}
    assert_equal_proportions(problem, fit_scikit(table, seeds["scikit-learn"]))
    timed = {"lda_cavi, four starts": partial(fit_cavi, 0)}
    timed |= {name: partial(way, seeds[name]) for name, way in ways.items()}
    with suppress(AbsentPeer):
        train = build_tomotopy(problem)
        seed = find_seed(lambda seed: train(seed)[1], problem, best)
        timed["tomotopy"] = lambda: Measured(train(seed)[0])
    seconds = report.time(timed, options.repeats, warmups=0)
    for case, (peer, ours) in zip(report.goals, PAIRS, strict=True):
        if peer in seconds:
            report.compare(case, seconds[ours], seconds[peer])
