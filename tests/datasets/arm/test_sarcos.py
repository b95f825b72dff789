"""SARCOS: the protocol of A.1.2, the three splits, and the stand-in for unavailable files."""

import hashlib
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.io import savemat
from support.runs.configured import F64, component, make_setting
from torch.testing import assert_close

from components.datasets import files
from components.datasets.arm import protocol, sarcos, simulation
from components.errors import SimulatedDataWarning
from runner.execution.rng import Streams

SIZES = {
    "sarcos/sarcos_inv.mat": protocol.TRAIN_ROWS,
    "sarcos/sarcos_inv_test.mat": protocol.TEST_ROWS,
}


def forget():
    for cached in (files.why_unavailable, sarcos._read, simulation.simulated_rows):
        cached.cache_clear()
    files.forget()


@pytest.fixture(autouse=True)
def _small_world(own_cache, monkeypatch):
    generate = simulation.simulate
    small = {"train": 4_000, "test": 1_500}
    monkeypatch.setattr(simulation, "simulate", lambda world: generate(replace(world, rows=small)))
    forget()
    yield
    forget()


@pytest.fixture(scope="session")
def published_folder(tmp_path_factory):
    """A data folder of files in the published form and size; the entries of a row encode its
    number."""
    folder = tmp_path_factory.mktemp("published")
    for path, n in SIZES.items():
        row = np.arange(n)[:, None]
        first = 0 if n == protocol.TRAIN_ROWS else 1_000_000
        rows = np.concatenate(
            [(first + row) * np.arange(1, 22), np.sin(first + row) * np.arange(10, 80, 10)], 1
        )
        (folder / path).parent.mkdir(exist_ok=True)
        savemat(folder / path, {(folder / path).stem: rows.astype(np.float64)})
    return folder


@pytest.fixture
def genuine(published_folder, monkeypatch):
    """The same folder, with a catalogue that lists its files as genuine."""
    catalogue = tuple(
        replace(
            f,
            urls=(),
            sha256=hashlib.sha256((published_folder / f.path).read_bytes()).hexdigest(),
            git_blob=None,
        )
        for f in files.catalogue()
        if f.path in SIZES
    )
    monkeypatch.setattr(files, "catalogue", lambda: catalogue)
    return published_folder


@pytest.fixture
def no_network(monkeypatch):
    monkeypatch.setattr(files, "_is_reachable", lambda _: False)


def dataset(**overrides):
    return component("dataset", "sarcos", **overrides)


def setting(data_dir, dtype=F64):
    return replace(make_setting(data_dir, dtype), offline=False)


def load(data_dir, replicate=0, dtype=F64, **overrides):
    """The problem; its name must equal the announced one."""
    chosen = dataset(**overrides)
    problem = chosen.load(Streams(0, replicate), setting(data_dir, dtype))
    assert problem.name == chosen.identity(data_dir, offline=False)
    return problem


def put_test_file(source, folder):
    path = folder / "sarcos" / "sarcos_inv_test.mat"
    path.parent.mkdir(parents=True)
    path.write_bytes((source / "sarcos" / path.name).read_bytes())


def test_standardisation_uses_observed_training_values(genuine):
    problem = load(genuine, n_train=500)
    x = problem.train.x
    y = problem.train.y
    mask = problem.train.mask
    assert_close(x.mean(0), torch.zeros(21, dtype=x.dtype), atol=1e-10, rtol=0)
    assert_close(x.std(0, correction=0), torch.ones(21, dtype=x.dtype))
    masked = np.ma.array(y, mask=~mask)
    assert_allclose(masked.mean(0), np.zeros(7), atol=1e-10)
    assert_allclose(masked.std(0), np.ones(7))
    assert (y[~mask] == 0).all()
    assert problem.test.mask.all()
    # y_mean and y_std restore the torques of the file.
    torques = problem.test.y * problem.y_std + problem.y_mean
    expected = np.sin(1_000_000 + np.arange(4_449))[:, None] * np.arange(10, 80, 10)
    assert_allclose(torques, expected, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, F64])
def test_tensors_have_the_requested_dtype(genuine, dtype):
    problem = load(genuine, dtype=dtype, n_train=50)
    batches = [part for b in (problem.train, problem.test) for part in (b.x, b.y)]
    assert {t.dtype for t in (*batches, problem.y_mean, problem.y_std)} == {dtype}
    assert problem.train.mask.dtype == torch.bool


@pytest.mark.parametrize("split", ["official", "test_file"])
def test_smaller_training_set_is_nested_in_larger(genuine, split):
    """Learning curves are paired: the test rows are the same, and rows and labels are only
    added."""
    small, large = (load(genuine, split=split, n_train=n, labels_per_row=2) for n in (100, 1000))
    assert torch.equal(small.train.mask, large.train.mask[:100])
    torques = [p.train.y * p.y_std + p.y_mean for p in (small, large)]
    assert_close(torques[0][small.train.mask], torques[1][:100][small.train.mask])
    tests = [p.test.y * p.y_std + p.y_mean for p in (small, large)]
    assert_close(*tests)


def test_labels_are_independent_of_the_number_of_test_rows(genuine):
    a = load(genuine, n_train=100)
    b = load(genuine, n_train=100, n_test=10)
    assert torch.equal(a.train.x, b.train.x)
    assert b.test.x.shape == (10, 21)


def test_official_split(genuine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = load(genuine, n_train=2000)
    assert problem.name == "sarcos"
    assert problem.train.x.shape == (2000, 21)
    assert problem.test.x.shape == (4_449, 21)
    # All test inputs in these files exceed all training inputs, so the sets are disjoint.
    assert problem.train.x[:, 0].max() < problem.test.x[:, 0].min()
    assert len(problem.train.x[:, 0].unique()) == 2000, "drawn without replacement"


def test_test_file_split_never_trains_on_a_test_row(genuine):
    problem = load(genuine, split="test_file", n_train=3_449)
    assert problem.name == "sarcos-test-file"
    assert problem.train.x.shape == (3_449, 21)
    assert problem.test.x.shape == (1_000, 21)
    x = torch.cat([problem.train.x, problem.test.x])[:, 0]
    assert len(x.unique()) == 4_449, "together they are the whole file"
    assert not torch.equal(x, x.sort().values)


def test_test_file_split_needs_only_the_test_file(genuine, tmp_path, no_network):
    put_test_file(genuine, tmp_path)
    assert load(tmp_path, split="test_file").name == "sarcos-test-file"
    with pytest.warns(SimulatedDataWarning):
        assert load(tmp_path, split="official").name == "sarcos-sim"


def test_file_that_arrives_later_changes_no_announced_data(genuine, tmp_path, no_network):
    announced = dataset(split="test_file").identity(tmp_path, offline=False)
    put_test_file(genuine, tmp_path)
    with pytest.warns(SimulatedDataWarning):
        assert load(tmp_path, split="test_file").name == announced == "sarcos-sim"
    forget()  # the next process
    assert dataset(split="test_file").identity(tmp_path, offline=False) == "sarcos-test-file"


def test_more_training_rows_than_simulated_are_refused(tmp_path, no_network):
    dataset(split="test_file", n_train=3449)
    message = r"dataset\.n_train=4001: sarcos-sim has 4000 training rows; set it to at most 4000"
    with pytest.warns(SimulatedDataWarning), pytest.raises(ValueError, match=message):
        load(tmp_path, n_train=4001)
