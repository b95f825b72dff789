"""Bags of words: predictions of scikit-learn, naive Bayes by its formula, and errors."""

import numpy as np
import pytest
import torch
from support.runs.configured import double
from support.small.small_nets import texts
from support.small.small_problems import classes, component, train
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.models.estimators.word_counts import sparse_counts, to_word_counts
from runner.execution.rng import Streams

FIT = component("inference", "fit")


def predict(name, problem, x, **keys):
    """Probabilities of a fitted model."""
    state, rng = train(FIT, component("model", name, **keys), problem, 1)
    return FIT.posterior(state).predict(x, rng.evaluation).probs[:, 0]


def by_hand(x, words):
    """Counts of the words 2 … of rows of tokens."""
    return np.array([[int((row == w).sum()) for w in range(2, words)] for row in x.numpy()])


def test_counts_match_hand_calculation():
    x = texts().train.x
    assert np.array_equal(sparse_counts(x, 7).toarray(), by_hand(x, 9))
    assert np.array_equal(to_word_counts(x, 7).numpy(), by_hand(x, 9))


@pytest.mark.parametrize("sublinear", [True, False])
def test_tf_idf_regression_equals_scikit_learn(sublinear):
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    problem = texts(n=60)
    peer = make_pipeline(
        TfidfTransformer(sublinear_tf=sublinear), LogisticRegression(C=3.0, max_iter=1000)
    )
    peer.fit(by_hand(problem.train.x, 9), problem.train.y[:, 0].numpy())
    expected = torch.from_numpy(peer.predict_proba(by_hand(problem.test.x, 9)))
    probs = predict("tfidf_logistic", problem, problem.test.x, C=3.0, sublinear=sublinear)
    assert_close(probs, expected)


@pytest.mark.parametrize("presence", [True, False])
def test_naive_bayes_equals_its_formula(presence):
    problem = texts(n=60)
    keys = {"smoothing": 0.5, "presence": presence}
    n, m = (by_hand(x, 9) for x in (problem.train.x, problem.test.x))
    n, m = ((n > 0) * 1, (m > 0) * 1) if presence else (n, m)
    y = problem.train.y[:, 0].numpy()
    scores = []
    for c in (0, 1):
        theta = (n[y == c].sum(0) + 0.5) / (n[y == c].sum() + 0.5 * 7)
        scores.append(np.log((y == c).mean()) + (m * np.log(theta)).sum(1))
    expected = torch.from_numpy(np.stack(scores, 1)).softmax(1)
    probs = predict("multinomial_naive_bayes", problem, problem.test.x, **keys)
    assert_close(probs, expected)


def test_word_order_and_unknown_words_do_not_matter():
    for name in ("tfidf_logistic", "multinomial_naive_bayes"):
        x = double([[2.0, 3, 4, 0], [4.0, 1, 3, 2]])
        assert_close(*predict(name, texts(), x))


def test_invalid_inputs_are_refused_in_one_line():
    for name in ("tfidf_logistic", "multinomial_naive_bayes"):
        model = component("model", name)
        with pytest.raises(ConfigMismatchError, match=r"inputs of small .* tokens; choose"):
            model.build(classes(n_classes=2), Streams(0))
        problem = texts()
        problem.train.y[:] = 1
        with pytest.raises(
            ConfigMismatchError,
            match=r"dataset\.n_train: .* 1 of 2 classes .*; raise it",
        ):
            train(FIT, model, problem, 1)
