"""Topics by our methods, and their held-out perplexity."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from components.topics.corpus import Corpus
from components.topics.topic_posterior import Topics
from components.topics.topic_scores import completion, perplexity, proportions
from runner.execution.rng import Streams
from scripts.benchmarks.workloads import component, train
from scripts.peers.topic_models import (
    PRIOR,
    count_words,
)


def evaluate(problem: Corpus, topics: Tensor) -> float:
    """Perplexity of topics [K, V] by the problem's own evaluation."""
    posterior = Topics(topics[None], torch.full((len(topics),), PRIOR, dtype=torch.float64))
    return perplexity(completion(posterior, problem.seen, problem.held), problem.held)


def fit_ours(problem: Corpus, name: str, steps: int, seed: int, K: int, **keys: Any) -> Tensor:
    """Topics [K, V] after some steps, the last set of them."""
    rng = Streams(seed)
    inference = component("inference", name, **keys)
    model = component("model", "lda", n_topics=K, alpha=PRIOR, eta=PRIOR).build(problem, rng)
    return inference.posterior(train(inference, model, problem, rng, steps)).topics[-1]


K = 10  # topics


ALIKE = 0.05  # difference of perplexities of equal results


def find_seed(way: Any, problem: Corpus, best: float) -> int:
    """The first of 20 seeds with which a method is within ``ALIKE`` of a perplexity."""
    for seed in range(20):
        if abs(evaluate(problem, way(seed)) - best) < ALIKE:
            return seed
    raise AssertionError(f"no seed comes near {best:.3f}")


def assert_equal_proportions(problem: Corpus, fitted: Any) -> None:
    theirs = torch.from_numpy(fitted.transform(count_words(problem.test, problem.n_words)))
    lam = torch.from_numpy(fitted.components_)
    weights = (lam.digamma() - lam.sum(1, keepdim=True).digamma()).exp()
    mine = proportions(problem.test, weights, torch.full((K,), PRIOR, dtype=torch.float64))
    distance = float((0.5 * (mine - theirs).abs().sum(1)).median())
    assert distance < 1e-3, f"proportions of held-out documents differ by {distance:.1e}"
