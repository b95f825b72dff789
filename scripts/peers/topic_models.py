"""Topics of scikit-learn (mean field) and tomotopy (collapsed Gibbs)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from sklearn.decomposition import LatentDirichletAllocation
from torch import Tensor

from components.contracts.problems import Counts
from components.topics.corpus import Corpus
from scripts.peers.installed import peer_imports

PASSES, SWEEPS, PRIOR = 50, 200, 0.1


def count_words(documents: Counts, n_words: int) -> Any:
    table = torch.zeros(documents.n_rows, n_words, dtype=torch.float64)
    return table.index_put((documents.rows, documents.words), documents.counts.double()).numpy()


def fit_scikit(table: Any, seed: int, K: int, passes: int = PASSES) -> LatentDirichletAllocation:
    return LatentDirichletAllocation(
        K,
        doc_topic_prior=PRIOR,
        topic_word_prior=PRIOR,
        max_iter=passes,
        evaluate_every=-1,
        random_state=seed,
    ).fit(table)


def normalise_topics(fitted: LatentDirichletAllocation) -> Tensor:
    lam = torch.from_numpy(fitted.components_)
    return lam / lam.sum(1, keepdim=True)


def build_tomotopy(problem: Corpus, K: int, sweeps: int) -> Callable[[int], tuple[float, Tensor]]:
    """CPU seconds of training and topics [K, V] of a seed."""
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
            model.train(sweeps, workers=1)
        seconds = time.process_time() - start
        topics = torch.zeros(K, problem.n_words, dtype=torch.float64)
        columns = [int(word) for word in model.used_vocabs]
        for k in range(K):
            topics[k, columns] = torch.tensor(model.get_topic_word_dist(k)).double()
        return seconds, topics

    return run
