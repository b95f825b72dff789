"""UCI sets: splits, standardisation, validation rows, scores in the units of the target, and
replacements of absent files."""

import hashlib
import math
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from support.runs.configured import F64, double, load_problem
from support.runs.real_files import FOLDER, find_or_skip
from torch.distributions import Normal
from torch.testing import assert_close

from components.contracts.predictive import GaussianMixture
from components.datasets import data_files, files
from components.datasets.tables import uci_regression
from components.datasets.tables.uci_regression import SHAPES, simulated_rows, split_rows
from components.errors import (
    ConfigMismatchError,
    DamagedFileError,
)
from runner.execution.rng import Streams


@pytest.fixture(autouse=True)
def _unread(own_cache):
    uci_regression._read.cache_clear()


def load_split(seed=0, replicate=0, **keys):
    keys = {"set": "yacht", "simulated": True} | keys
    problem = load_problem("uci_regression", seed=seed, replicate=replicate, **keys)
    return problem, Streams(seed, replicate)


class Known:
    """A posterior that predicts a constant, in standardised units."""

    def predict(self, x, generator):
        mu = torch.full((2, len(x), 1), 0.25, dtype=x.dtype)
        return GaussianMixture(mu, torch.full_like(mu, 0.5))


@pytest.mark.parametrize("rows", [308, 506, 1030])
def test_splits_are_disjoint_and_cover_all_rows(rows):
    records = []
    for split in range(20):
        train, test = split_rows(rows, split)
        assert len(train) == round(0.9 * rows)
        assert sorted([*train, *test]) == list(range(rows))
        records.append(tuple(sorted(test)))
    assert len(set(records)) == 20


@pytest.mark.parametrize("name", SHAPES)
def test_splits_equal_those_published_with_the_data(name):
    published = np.load(*find_or_skip(f"uci_bnn/{name}.npz"))
    shape = SHAPES[name]
    assert published["data"].shape[0] == shape.rows
    assert published["index_features"].tolist() == list(range(shape.inputs))
    assert published["index_target"].tolist() == [shape.inputs]
    assert int(published["n_splits"]) == shape.splits
    for split in {0, 1, shape.splits - 1}:
        train, test = split_rows(shape.rows, split)
        assert np.array_equal(train, published[f"index_train_{split}"])
        assert np.array_equal(test, published[f"index_test_{split}"])


def test_real_rows_are_verified_and_standardised():
    published = np.load(*find_or_skip("uci_bnn/naval.npz"))
    problem, _ = load_split(set="naval", simulated=False, data_dir=FOLDER, replicate=3)
    data = published["data"]
    rows = published["index_train_3"]
    assert problem.name == "uci"
    x = data[:, :16]
    y = data[:, 16]
    deviation = x[rows].std(0)
    constant = np.ptp(x, axis=0) == 0
    assert constant.sum() == 2
    expected = (x - x[rows].mean(0)) / np.where(constant, 1, deviation)
    assert_allclose(problem.train.x.numpy(), expected[rows], atol=1e-9)
    assert_allclose(problem.test.x.numpy(), expected[published["index_test_3"]], atol=1e-9)
    back = problem.test.y * problem.y_std + problem.y_mean
    assert_allclose(back[:, 0].numpy(), y[published["index_test_3"]])
    assert torch.isfinite(problem.train.x).all()


def test_replicates_take_splits_scaled_by_training_rows():
    problem, _ = load_split(replicate=5)
    assert_close(problem.train.x.mean(0), torch.zeros(6, dtype=F64), atol=1e-12, rtol=0)
    assert_close(problem.train.y.std(0, correction=0), torch.ones(1, dtype=F64))
    rows = simulated_rows("yacht", SHAPES["yacht"])
    _, test = split_rows(308, 5)
    back = problem.test.y * problem.y_std + problem.y_mean
    assert_close(back[:, 0], torch.from_numpy(rows[test, 6]))
    fixed, _ = load_split(split=5)
    assert torch.equal(fixed.test.x, problem.test.x)
    # standard splits do not depend on the seed
    assert torch.equal(load_split(seed=9, replicate=5)[0].train.x, problem.train.x)


def test_constant_input_is_only_centred(monkeypatch):
    rows = simulated_rows("yacht", SHAPES["yacht"])
    rows[:, 2] = 0.1  # with a mean that is not exactly 0.1
    monkeypatch.setattr(uci_regression, "simulated_rows", lambda *_: rows)
    problem, _ = load_split()
    assert problem.train.x[:, 2].abs().max() < 1e-12


def test_scores_are_in_the_units_of_the_target():
    problem, rng = load_split()
    scores = problem.score(Known(), rng)
    scale = float(problem.y_std)
    mean = float(problem.y_mean)
    y = (problem.test.y[:, 0] * scale + mean).tolist()
    guess = mean + 0.25 * scale
    variance = 0.5 * scale**2
    error = sum((v - guess) ** 2 for v in y) / len(y)
    log_density = sum(
        -0.5 * math.log(2 * math.pi * variance) - (v - guess) ** 2 / (2 * variance) for v in y
    ) / len(y)
    assert_close(scores["rmse"], math.sqrt(error))
    assert_close(scores["log_likelihood"], log_density)
    assert_close(scores["nlpp"], -log_density)
    density = Normal(0.0, 1.0)
    z = double([(v - guess) / math.sqrt(variance) for v in y])
    crps = math.sqrt(variance) * (
        z * (2 * density.cdf(z) - 1) + 2 * density.log_prob(z).exp() - math.pi**-0.5
    )
    # Gneiting and Raftery (2007), eq. (5), of one Gaussian
    assert_close(scores["crps"], float(crps.mean()))


@pytest.mark.parametrize("form", ["txt", "npz"])
def test_both_file_formats_are_read_and_verified(tmp_path, monkeypatch, form):
    rows = simulated_rows("yacht", SHAPES["yacht"])
    digest = hashlib.sha256(rows.astype("<f8").tobytes()).hexdigest()
    entry = next(f for f in files.catalogue() if f.path == "uci_bnn/yacht.txt")
    for module in (files, data_files):
        monkeypatch.setattr(module, "catalogue", lambda: (replace(entry, numbers_sha256=digest),))
    path = tmp_path / "uci_bnn" / f"yacht.{form}"
    path.parent.mkdir()

    def put(values):
        np.savez(path, data=values) if form == "npz" else np.savetxt(path, values, fmt="%.17g")

    put(rows)
    problem, _ = load_split(simulated=False, data_dir=tmp_path)
    assert problem.name == "uci"
    assert_close(problem.train.x, load_split()[0].train.x)
    put(rows + 1)
    os.utime(path, ns=(1, 1))
    files.why_unavailable.cache_clear()
    with pytest.raises(DamagedFileError, match="numbers"):
        load_split(simulated=False, data_dir=tmp_path)


def test_invalid_requests_are_refused():
    with pytest.raises(ConfigMismatchError, match="replicates: protein has only 5 splits"):
        load_split(set="protein", replicate=5)
