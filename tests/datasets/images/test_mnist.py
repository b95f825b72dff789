"""MNIST and Fashion-MNIST from their idx files, the stand-in with its own name, and the split."""

import gzip

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import zoom
from support.runs.configured import load_problem
from support.runs.real_files import FOLDER, find_or_skip
from support.small.small_problems import component

from components.datasets.bundled import read_digits
from components.datasets.images.mnist_files import enlarge, enlarged_digits

FIRST_TEN = {  # known labels of the first test images
    "mnist": [7, 2, 1, 0, 4, 1, 4, 9, 5, 9],
    "fashion_mnist": [9, 2, 1, 1, 6, 1, 4, 6, 5, 7],
}
both = pytest.mark.parametrize("name", FIRST_TEN)


def load_images(name="mnist", *args, **keys):
    return load_problem(name, *args, dtype=torch.float32, **keys)


@both
def test_stand_in_has_digits_within_bounds(name):
    problem = load_images(name, offline="always", n_test=100)
    assert problem.train.x.shape == (1200, 784)
    assert problem.test.x.shape == (100, 784)
    assert problem.bounds == (0.0, 1.0)
    assert problem.train.x.min() >= 0
    assert problem.train.x.max() <= 1
    assert sorted(problem.train.y.unique().tolist()) == list(range(10))


def test_replicates_share_only_the_test_images(tmp_path):
    first, other = (load_images(offline="always", seed=s, n_train=50, n_test=20) for s in (0, 1))
    assert torch.equal(first.test.x, other.test.x)
    assert not torch.equal(first.train.x, other.train.x)
    assert len(first.train.x) == 50


@both
def test_genuine_files_are_read_unchanged(name):
    (images,) = find_or_skip(f"{name}/t10k-images-idx3-ubyte.gz")
    problem = load_images(name, FOLDER, n_train=1000)
    assert problem.name == name
    assert problem.train.x.shape == (1000, 784)
    assert problem.test.x.shape == (10_000, 784)
    content = gzip.decompress(images.read_bytes())
    third = torch.tensor(list(content[16 + 2 * 784 : 16 + 3 * 784]), dtype=torch.float32) / 255
    assert torch.equal(problem.test.x[2], third)
    assert problem.test.y[:10, 0].tolist() == FIRST_TEN[name]


def test_fashion_is_not_mnist():
    paths = [component("dataset", name).source().paths for name in FIRST_TEN]
    assert not set(paths[0]) & set(paths[1])


def test_enlarged_digits_equal_linear_interpolation():
    images = read_digits()[0].reshape(-1, 8, 8) / 16
    theirs = zoom(images, (1, 2.5, 2.5), order=1).clip(0, 1)
    assert_allclose(enlarge(images, 20), theirs, atol=1e-15)
    (train, _), (test, _) = enlarged_digits()
    assert_array_equal(np.concatenate([train, test])[:, 4:24, 4:24], (255 * theirs).round())
