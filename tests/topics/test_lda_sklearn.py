"""Topics by scikit-learn: arguments of the library, and its result as a fixed point of our
updates."""

import numpy as np
import torch
from sklearn.decomposition import LatentDirichletAllocation
from support.runs.configured import component
from support.small.small_corpora import lda, small_bars
from torch.testing import assert_close

from components.contracts.streams import seed_from
from components.topics.maths.document_factors import fit_documents
from components.topics.starts import evenly, log_weights
from runner.execution.rng import Streams


def run(problem, model, **keys):
    inference = component("inference", "lda_sklearn", **keys)
    rng = Streams(0)
    state, _ = inference.step(inference.init(model, problem, rng), problem.train, rng)
    assert inference.step(state, problem.train, rng)[0] is state, "a further step changes nothing"
    return inference, state


def test_fit_equals_the_library_on_the_same_table():
    problem = small_bars()
    model = lda(problem, 6, 0.3, 0.2)
    table = np.zeros((problem.n, problem.n_words))
    train = problem.train
    np.add.at(table, (train.rows.numpy(), train.words.numpy()), train.counts.numpy())
    theirs = LatentDirichletAllocation(
        6,
        doc_topic_prior=0.3,
        topic_word_prior=0.2,
        max_iter=7,
        evaluate_every=-1,
        random_state=seed_from(Streams(0).init),
    ).fit(table)
    inference, state = run(problem, model, passes=7)
    assert_close(state.lam, torch.from_numpy(theirs.components_))
    topics = inference.posterior(state).topics
    assert_close(topics, (state.lam / state.lam.sum(1, keepdim=True))[None])


def test_topics_are_fixed_points_of_our_updates():
    """λ = η + Σ_d n_dv φ_dv at the factors of the documents."""
    problem = small_bars()
    model = lda(problem, 6, 0.1, 0.1)
    _, state = run(problem, model, passes=400, updates=1000, tolerance=1e-9)
    fit = fit_documents(
        problem.train.pairs,
        log_weights(state.lam.T).exp(),
        model.alpha,
        evenly(model, problem.train),
        2000,
        1e-10,
    )
    assert_close(model.eta[:, None] + fit.stats, state.lam.T, rtol=1e-2, atol=2e-2)
