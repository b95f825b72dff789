"""MNIST variations: the recipe, the rows, and the stand-in for MNIST."""

import gzip
import struct

import numpy as np
import pytest
import torch
from support.runs.configured import load_problem
from support.runs.real_files import FOLDER, find_or_skip
from support.small.small_problems import component

from components.datasets.images.mnist_files import enlarged_digits, read_idx
from components.datasets.images.mnist_variations import overlay, patches, photographs

FILES = component("dataset", "mnist_variations").source().paths
pytestmark = pytest.mark.usefixtures("own_cache")


SMALL = {"n_train": 100, "n_test": 60, "offline": "always"}


def dataset(**changes):
    return component("dataset", "mnist_variations", **SMALL | changes)


def load(*args, **changes):
    return load_problem("mnist_variations", *args, **SMALL | changes)


def test_read_idx(tmp_path):
    values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    path = tmp_path / "some-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(struct.pack(">BBBBiii", 0, 0, 8, 3, 2, 3, 4) + values.tobytes()))
    assert np.array_equal(read_idx(path), values)


def test_ink_hides_the_background_and_paper_shows_it():
    background = np.random.default_rng(0).random((5, 28, 28))
    assert np.array_equal(overlay(np.zeros_like(background), background), background)
    assert np.array_equal(overlay(np.ones_like(background), background), np.ones_like(background))
    half = overlay(np.full_like(background, 0.5), background)
    assert np.allclose(half, 0.5 + 0.5 * background)


def test_patches_are_rich_pieces_of_the_photographs():
    result = patches(40, 0.2, np.random.default_rng(0))
    assert result.shape == (40, 28, 28)
    assert (result.std((1, 2)) >= 0.2).all()
    assert 0 <= result.min() <= result.max() <= 1
    photos = photographs()
    assert len(photos) == 3

    def holds(photo, patch):
        starts = np.argwhere(photo[:-27, :-27] == patch[0, 0])
        return any(np.array_equal(photo[i : i + 28, j : j + 28], patch) for i, j in starts)

    assert all(any(holds(photo, patch) for photo in photos) for patch in result[:10])
    poor = patches(200, 0.0, np.random.default_rng(0)).std((1, 2))
    assert (poor < 0.2).mean() > 0.3, "without the rule many patches have little texture"


def test_threshold_that_no_patch_passes_is_refused():
    with pytest.raises(ValueError, match=r"dataset\.min_patch_std: .*; lower it"):
        patches(1, 0.6, np.random.default_rng(0))


def test_rows_are_grouped_by_task_and_carry_one_label():
    problem = load()
    for batch, n in ((problem.train, 100), (problem.test, 60)):
        assert batch.x.shape == (3 * n, 784)
        assert torch.equal(batch.mask, torch.eye(3, dtype=torch.bool).repeat_interleave(n, 0))
        assert 0 <= batch.x.min() <= batch.x.max() <= 1
        assert (batch.y[~batch.mask] == 0).all()
    assert (problem.bounds, problem.image_shape, problem.n_classes) == ((0.0, 1.0), (28, 28), 10)


def test_backgrounds_match_their_names():
    x = load(n_train=400).train.x.reshape(3, 400, 28, 28)
    corner = x[:, :, :3, :3].flatten(1)  # these pixels have no ink
    assert (corner[0] == 0).all()
    # Uniform on {0, …, 255}/255: mean ½, variance (256² − 1)/(12 · 255²); 4 standard errors.
    n = corner[1].numel()
    variance = (256**2 - 1) / (12 * 255**2)
    assert corner[1].mean() == pytest.approx(0.5, abs=4 * (variance / n) ** 0.5)
    assert corner[1].var() == pytest.approx(
        variance, abs=4 * (variance * variance * 0.8 / n) ** 0.5
    )
    neighbours = torch.stack([x[1:, :, 0, :-1].flatten(1), x[1:, :, 0, 1:].flatten(1)])
    random, photo = (float(torch.corrcoef(neighbours[:, t])[0, 1]) for t in range(2))
    assert abs(random) < 0.05
    assert photo > 0.7, "photographs are smooth"


def test_tasks_share_test_digits_but_not_training_digits():
    """Recovers the digits where the background is hidden: ink of opacity 1 has intensity 1 in every
    task."""
    problem = load(n_train=400)
    test = problem.test.x.reshape(3, 60, 784)
    labels = problem.test.y.reshape(3, 60, 3)
    ink = test[0] == 1
    assert (test[1][ink] == 1).all()
    assert (test[2][ink] == 1).all()
    assert torch.equal(labels[0, :, 0], labels[1, :, 1])
    assert torch.equal(labels[0, :, 0], labels[2, :, 2])
    # All 3 · 400 digits of the pool are used once: the tasks together have the classes of the
    # pool.
    given = problem.train.y[problem.train.mask].bincount(minlength=10)
    assert given.tolist() == np.bincount(enlarged_digits()[0][1], minlength=10).tolist()


def test_stand_in_has_at_most_its_own_images():
    problem = load(n_train=1000, n_test=10_000)
    assert (len(problem.train.x), len(problem.test.x)) == (3 * 400, 3 * 597)


def test_replicates_share_only_the_test_set():
    a, b = (load(replicate=replicate) for replicate in range(2))
    again = load()
    other = load(test_seed=1)
    assert torch.equal(a.test.x, b.test.x)
    assert not torch.equal(a.train.x, b.train.x)
    assert torch.equal(a.train.x, again.train.x)
    assert torch.equal(a.train.x, other.train.x)
    assert not torch.equal(a.test.x, other.test.x)


def test_real_digits():
    images, labels = map(read_idx, find_or_skip(*FILES)[2:])
    problem = load(FOLDER, n_train=200, n_test=300, offline="error")
    assert problem.name == "mnist-variations-regenerated"
    assert problem.train.x.shape == (600, 784)
    assert np.allclose(problem.test.x[:300].numpy(), images[:300].reshape(300, -1) / 255)
    assert problem.test.y[:300, 0].tolist() == labels[:300].tolist()
