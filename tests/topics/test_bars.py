"""Bars: the true topics, and documents that are drawn from them."""

import pytest
import torch
from support.runs.configured import load

from components.topics.bars import bar_topics


def test_topics_are_rows_and_columns():
    topics = bar_topics(3)
    assert topics.shape == (6, 9)
    assert (topics[1].view(3, 3) * 3).tolist() == [[0, 0, 0], [1, 1, 1], [0, 0, 0]]
    assert (topics[5].view(3, 3) * 3).tolist() == [[0, 0, 1]] * 3


def test_documents_follow_their_law():
    problem, _ = load("bars", n_train=4000, n_test=5)
    assert problem.name == "bars"
    table = (
        torch.zeros(4000, 25)
        .double()
        .index_put_((problem.train.rows, problem.train.words), problem.train.counts.double())
    )
    assert (table.sum(1) == 100).all()
    assert table.sum(0) / 400_000 == pytest.approx(0.04, rel=0.08)
    # Var n_v of a Dirichlet-multinomial with a pixel's mass on two topics: both have 5 pixels,
    # (2/5) Σ π of the two.
    share = table / 100
    K = 10
    a = 0.1
    n = 100
    m = 1 / K
    v = m * (1 - m) / (K * a + 1)  # of π_k
    c = -m * m / (K * a + 1)
    p = 2 * m / 5
    var_p = (2 * v + 2 * c) / 25
    expected = var_p + (p * (1 - p) - var_p) / n
    assert share.var(0).mean() == pytest.approx(expected, rel=0.05)
    assert (
        load("bars", 1, n_train=20, n_test=5)[0].train.words.tolist()
        != problem.train.part(slice(0, 20), 1.0).words.tolist()
    )
