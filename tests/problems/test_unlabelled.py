"""Unlabelled problems: batches as in other problems, and bounds."""

import dataclasses

import pytest
import torch
from support.runs.configured import generator
from support.small.small_problems import real
from support.small.unlabelled_problems import real_rows

from components.contracts.problems import Rows
from components.errors import ConfigMismatchError
from components.problems.unlabelled import Unlabelled
from runner.execution.rng import Streams


@pytest.mark.parametrize("batch_kind", ["minibatch", "whole"])
def test_batches_equal_those_of_supervised_problems(batch_kind):
    rows = real_rows(n=40, values=3, batch_size=7)
    labelled = real(n=40, n_inputs=3, batch_size=7)
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


def test_redrawn_values_depend_only_on_the_step():
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


def test_bounds_are_ordered_and_tight_for_known_likelihoods():
    problem = real_rows()

    class Known:
        def row_log_weights(self, batch, n_samples, generator):
            return -batch.x.square().sum(1)[None]

    class Noisy(Known):
        def row_log_weights(self, batch, n_samples, generator):
            noise = torch.randn(n_samples, batch.n_rows, generator=generator, dtype=batch.x.dtype)
            # E exp(noise − ½) = 1
            return super().row_log_weights(batch, 1, generator) + noise - 0.5

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
    problem = real_rows(n=20)
    chosen = problem.held_out(0.25, Streams(0))
    assert (chosen.n, chosen.test.n_rows, chosen.name) == (15, 5, f"{problem.name}-validation")
    rows = torch.cat([chosen.train.x, chosen.test.x])
    assert sorted(rows.tolist()) == sorted(problem.train.x.tolist())
    p = torch.rand(10, 3)
    drawn = Unlabelled("p", "binary", Rows(p, 1.0), Rows(p, 1.0), None, redrawn=True).held_out(
        0.5, Streams(0)
    )
    assert set(drawn.test.x.unique().tolist()) <= {0.0, 1.0}
    with pytest.raises(ConfigMismatchError, match=r"validation=0\.99: .*; lower it"):
        problem.held_out(0.99, Streams(0))
