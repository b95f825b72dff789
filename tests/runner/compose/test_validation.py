"""validation: scores use held-out training rows instead of the test rows."""

import pytest
import torch

from runner.execution.assembly import load_problem
from runner.execution.execute import run
from runner.execution.rng import Streams
from runner.record.facts import read

TOY = ["+experiment=multitask_toy", "smoke=true", "steps=2"]
DIGITS = ["+experiment=digits_fgsm", "smoke=true"]


def _problem(job, seed=0, replicate=0):
    return load_problem(job, Streams(seed, replicate, torch.device("cpu")))


def _rows(batch):
    return {tuple(row) for row in batch.x.tolist()}


@pytest.mark.parametrize("experiment", [TOY, DIGITS])
def test_held_out_rows_are_training_rows(make_job, experiment):
    whole = _problem(make_job(*experiment))
    part = _problem(make_job(*experiment, "validation=0.25"))
    held = round(0.25 * whole.n)
    assert (part.n, len(part.test.x)) == (whole.n - held, held)
    assert _rows(part.train) | _rows(part.test) == _rows(whole.train)
    assert not _rows(part.test) & _rows(whole.test)
    for batch in (part.train, part.test):  # each row with its own labels
        for x, y, mask in zip(batch.x, batch.y, batch.mask, strict=True):
            (row,) = (whole.train.x == x).all(1).nonzero()[:1, 0]
            assert torch.equal(whole.train.y[row], y)
            assert torch.equal(whole.train.mask[row], mask)


def test_held_out_rows_depend_only_on_seed_and_replicate(make_job):
    job = make_job(*DIGITS, "validation=0.25")
    first = _problem(job)
    assert torch.equal(first.test.x, _problem(job).test.x)
    assert not torch.equal(first.test.x, _problem(job, replicate=1).test.x)
    assert not torch.equal(first.test.x, _problem(job, seed=1).test.x)


def test_validation_is_recorded_under_its_own_name(make_job):
    job = make_job(*TOY, "validation=0.25")
    _, result = run(job)
    assert job.data == read(job.folder)["data"] == "multitask_toy-validation"
    assert result["nlpp"] != run(make_job(*TOY))[1]["nlpp"]
