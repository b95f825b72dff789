"""Binarised images: drawn once for all runs, drawn in each run, or thresholded at ½, and their
names."""

import pytest
import torch
from support.runs.configured import component, load_problem

from components.datasets.images.mnist_files import enlarged_digits
from runner.execution.rng import Streams


def load(name, seed=0, **changes):
    keys = {"offline": "always", "dtype": torch.float32} | changes
    return load_problem(name, seed=seed, **keys)


@pytest.mark.parametrize("name", ["binarised_mnist", "binarised_fashion"])
def test_static_pixels_are_drawn_once_for_all_runs(name):
    """An image has the same pixels for all seeds, independent of the other chosen images."""
    problem = load(name, binarised="static")
    assert (problem.name, problem.n, problem.test.n_rows) == ("digits-enlarged-static", 1200, 597)
    assert (problem.values, problem.redrawn) == ("binary", False)
    other = load(name, seed=5, binarised="static", n_train=100, n_test=50)
    assert torch.equal(other.test.x, problem.test.x[:50])
    rows = {tuple(row) for row in problem.train.x.int().tolist()}
    assert all(tuple(row) in rows for row in other.train.x.int().tolist())
    assert not torch.equal(other.train.x, problem.train.x[:100]), (
        "which are chosen depends on the seed"
    )
    shown = [batch.x for _, batch in problem.batches("minibatch", Streams(0), 0, 24)]
    assert {tuple(row) for row in torch.cat(shown).int().tolist()} == rows, (
        "two epochs show the same rows"
    )


def test_static_pixels_have_their_brightness_as_probability():
    problem = load("binarised_mnist")
    (_, _), (test, _) = enlarged_digits()
    p = torch.tensor(test).flatten(1) / 255
    assert set(problem.test.x.unique().tolist()) == {0.0, 1.0}
    grey = (p > 0.05) & (p < 0.95)
    z = (problem.test.x - p)[grey].sum() / (p * (1 - p))[grey].sum().sqrt()
    assert abs(float(z)) < 4
    assert (problem.test.x[p == 0] == 0).all()
    assert (problem.test.x[p == 1] == 1).all()


def test_other_binarisations_equal_those_of_images():
    for mode in ("threshold", "dynamic", "static"):
        ours = load("binarised_mnist", seed=2, binarised=mode)
        theirs = load("images", seed=2, set="mnist", binarised=mode)
        assert torch.equal(ours.train.x, theirs.train.x)
        assert torch.equal(ours.test.x, theirs.test.x)
        assert (ours.name, ours.redrawn) == (theirs.name, theirs.redrawn)


def test_digits_can_be_binarised_once():
    first, second = (load("images", seed=seed, binarised="static") for seed in (0, 1))
    rows = [
        {tuple(r) for r in torch.cat([p.train.x, p.test.x]).int().tolist()} for p in (first, second)
    ]
    assert rows[0] == rows[1]
    assert first.name == "digits-static"


@pytest.mark.parametrize(
    ("proposal", "temperatures"), [("guide", 0), ("laplace", 0), ("guide", 3), ("laplace", 3)]
)
def test_scoring_requirements_name_their_key_and_fix(proposal, temperatures):
    asked = component(
        "dataset", "binarised_mnist", proposal=proposal, ais_temperatures=temperatures
    ).asked_by_keys()
    assert bool(asked) == (proposal == "laplace" or temperatures > 0)
    for setting, mend in asked.values():
        assert (
            ("dataset.proposal=laplace" in setting)
            == ("dataset.proposal=guide" in mend)
            == (proposal == "laplace")
        )
        assert (
            ("dataset.ais_temperatures=3" in setting)
            == ("dataset.ais_temperatures=0" in mend)
            == (temperatures > 0)
        )
