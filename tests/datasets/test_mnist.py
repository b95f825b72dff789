"""MNIST from its idx files, the stand-in under its own name, and the split."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
import torch
from small_problems import component

from components.datasets import mnist
from components.interfaces import Setting
from components.trouble import DataUnavailable
from runner.rng import Streams


def loaded(data_dir: Path = Path(), seed: int = 0, **keys):
    setting = Setting(data_dir, torch.device("cpu"), torch.float32, 1, offline=True)
    return component("dataset", "mnist", **keys).load(Streams(seed), setting)


def test_stand_in_has_its_own_name():
    problem = loaded(offline="always", n_test=100)
    assert problem.name == mnist.STAND_IN == component("dataset", "mnist", offline="always").identity(Path(), True)
    assert problem.train.x.shape == (1200, 784)
    assert problem.test.x.shape == (100, 784)
    assert problem.bounds == (0.0, 1.0)
    assert float(problem.train.x.min()) >= 0
    assert float(problem.train.x.max()) <= 1
    assert sorted(problem.train.y.unique().tolist()) == list(range(10))


def test_test_images_are_the_same_in_every_replicate_and_training_images_are_not(tmp_path):
    one, other = (loaded(offline="always", seed=s, n_train=50, n_test=20) for s in (0, 1))
    assert torch.equal(one.test.x, other.test.x)
    assert not torch.equal(one.train.x, other.train.x)
    assert len(one.train.x) == 50


def test_missing_files_are_said(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(DataUnavailable, match="offline=simulate"):
        loaded(tmp_path / "nowhere", offline="error")


@pytest.mark.skipif("RUNNER_DATA_DIR" not in os.environ, reason="RUNNER_DATA_DIR is not set")
def test_genuine_files_are_read_as_they_are():
    folder = Path(os.environ["RUNNER_DATA_DIR"])
    if not (folder / "mnist/t10k-images-idx3-ubyte.gz").is_file():
        pytest.skip("MNIST is not in RUNNER_DATA_DIR")
    problem = loaded(folder, n_train=1000)
    assert problem.name == "mnist"
    assert problem.train.x.shape == (1000, 784)
    assert problem.test.x.shape == (10_000, 784)
    content = gzip.decompress((folder / "mnist/t10k-images-idx3-ubyte.gz").read_bytes())
    third = torch.tensor(list(content[16 + 2 * 784 : 16 + 3 * 784]), dtype=torch.float32) / 255
    assert torch.equal(problem.test.x[2], third)
    assert problem.test.y[:10, 0].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]  # the well-known first ten
