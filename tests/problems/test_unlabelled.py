"""Unlabelled problems: ragged rows, batches that any kind of problem shares, bounds and
perplexity."""

import dataclasses
import math

import pytest
import torch
from support.runs.configured import generator
from support.small.small_problems import real
from support.small.unlabelled_problems import Unigram, real_rows, urn
from torch.testing import assert_close

from components.contracts.posteriors import BoundsLikelihood
from components.contracts.problems import Rows, Words
from components.errors import ConfigMismatchError
from components.problems.unlabelled import Unlabelled
from runner.execution.rng import Streams


def as_lists(words):
    return [part.tolist() for part in words.words.split(words.lengths.tolist())]


def test_parts_of_ragged_rows():
    words = Words(torch.tensor([3, 1, 4, 1, 5, 9]), torch.tensor([2, 0, 3, 1]), 1.0)
    assert as_lists(words) == [[3, 1], [], [4, 1, 5], [9]]
    some = words.part(torch.tensor([3, 2, 1, 3]), 2.5)
    assert as_lists(some) == [[9], [4, 1, 5], [], [9]]
    assert (some.n_rows, some.scale) == (4, 2.5)
    assert as_lists(words.part(slice(1, 3), 1.0)) == [[], [4, 1, 5]]
    assert words.rows.tolist() == [0, 0, 2, 2, 2, 3]


@pytest.mark.parametrize("batch_kind", ["minibatch", "whole"])
def test_batches_are_those_of_supervised_problems(batch_kind):
    rows, labelled = real_rows(n=40, values=3, batch_size=7), real(n=40, n_inputs=3, batch_size=7)
    rows = dataclasses.replace(rows, train=Rows(labelled.train.x, 1.0))
    ours, theirs = (
        list(problem.batches(batch_kind, Streams(3), 0, 12)) for problem in (rows, labelled)
    )
    for (step, batch), (same, other) in zip(ours, theirs, strict=True):
        assert step == same
        assert torch.equal(batch.x, other.x)
        assert batch.scale == other.scale
    late = list(rows.batches(batch_kind, Streams(3), 8, 12))
    assert all(torch.equal(a.x, b.x) for (_, a), (_, b) in zip(late, ours[8:], strict=True))


def test_words_and_numbers_take_the_same_rows():
    problem, _ = urn(n=20, batch_size=6)
    numbered = Unlabelled(
        "n", "real", Rows(torch.arange(20.0), 1.0), Rows(torch.arange(20.0), 1.0), 6
    )
    every = as_lists(problem.train)
    for (_, words), (_, rows) in zip(
        problem.batches("minibatch", Streams(0), 0, 5),
        numbered.batches("minibatch", Streams(0), 0, 5),
        strict=True,
    ):
        assert as_lists(words) == [every[int(i)] for i in rows.x]
        assert words.scale == rows.scale == 20 / 6


def test_redrawn_values_are_a_function_of_the_step():
    p = torch.rand(50, 8, generator=generator())
    problem = Unlabelled(
        "p", "binary", Rows(p, 1.0), Rows((p > 0.5).float(), 1.0), None, redrawn=True
    )
    shown = [batch.x for _, batch in problem.batches("minibatch", Streams(1), 0, 400)]
    assert not torch.equal(shown[0], shown[1])
    assert set(shown[0].unique().tolist()) <= {0.0, 1.0}
    again = dict(problem.batches("minibatch", Streams(1), 6, 8))
    assert torch.equal(again[8].x, shown[7])
    z = (torch.stack(shown).mean(0) - p) / (p * (1 - p) / 400).sqrt()
    assert z.abs().max() < 5
    assert z.square().mean() == pytest.approx(1, abs=0.25)


def test_perplexity_of_a_unigram_is_exact_on_ragged_rows():
    problem, p = urn()
    assert 0 in problem.test.lengths
    posterior = Unigram(p)
    assert isinstance(posterior, BoundsLikelihood)
    problem.evaluation_chunk = 7  # not a divisor of the number of rows
    words = [w for row in as_lists(problem.test) for w in row]
    expected = math.exp(-sum(math.log(p[w]) for w in words) / len(words))
    assert problem.score(posterior, Streams(0)) == {
        "perplexity": pytest.approx(expected, rel=1e-12)
    }
    assert_close(problem.score(Unigram(torch.full((7,), 1 / 7)), Streams(0))["perplexity"], 7.0)

    counts = [torch.zeros(30, 7, dtype=p.dtype) for _ in range(2)]
    for table, rows in zip(counts, (problem.train, problem.test), strict=True):
        table.index_put_((rows.rows, rows.words), torch.ones((), dtype=p.dtype), accumulate=True)
    as_counts = Unlabelled(
        "counts", "count", *(Rows(table, 1.0) for table in counts), None, n_symbols=7
    )
    assert as_counts.score(posterior, Streams(0))["perplexity"] == pytest.approx(
        expected, rel=1e-12
    )


def test_bounds_are_ordered_and_equal_where_the_likelihood_is_known():
    problem = real_rows()

    class Known:
        def log_weights(self, batch, n_samples, generator):
            return -batch.x.square().sum(1)[None]

    class Noisy(Known):
        def log_weights(self, batch, n_samples, generator):
            noise = torch.randn(n_samples, batch.n_rows, generator=generator, dtype=batch.x.dtype)
            return super().log_weights(batch, 1, generator) + noise - 0.5  # E exp(noise − ½) = 1

    exact = float(problem.test.x.square().sum(1).mean())
    assert problem.score(Known(), Streams(0)) == {
        "nelbo": pytest.approx(exact),
        "nll_bound": pytest.approx(exact),
    }
    problem.importance_samples = 2000
    noisy = problem.score(Noisy(), Streams(0))
    assert noisy["nelbo"] == pytest.approx(exact + 0.5, abs=0.02)
    assert noisy["nll_bound"] == pytest.approx(exact, abs=0.02)
    assert noisy == problem.score(Noisy(), Streams(0)), "evaluations are a function of the seed"


def test_held_out_rows_come_from_the_training_rows():
    problem, _ = urn(n=20)
    chosen = problem.held_out(0.25, Streams(0))
    assert (chosen.n, chosen.test.n_rows, chosen.name) == (15, 5, "urn-validation")
    assert sorted(as_lists(chosen.train) + as_lists(chosen.test)) == sorted(as_lists(problem.train))
    p = torch.rand(10, 3)
    drawn = Unlabelled("p", "binary", Rows(p, 1.0), Rows(p, 1.0), None, redrawn=True).held_out(
        0.5, Streams(0)
    )
    assert set(drawn.test.x.unique().tolist()) <= {0.0, 1.0}
    with pytest.raises(ConfigMismatchError, match=r"validation=0\.99"):
        problem.held_out(0.99, Streams(0))
