"""CIFAR-10: an archive made by hand, the stand-in of digits, and standardised pixels."""

import numpy as np
import pytest
from support.runs.archives import write_archive
from support.runs.configured import double, load, load_problem
from torch.testing import assert_close

from components.datasets.images.cifar10 import read_cifar10
from components.errors import DamagedFileError


def archive(path, names):
    """Write records [3, 3073] for each name, and return them."""
    rng = np.random.default_rng(0)
    records = rng.integers(0, 256, (len(names), 3, 3073), dtype=np.uint8)
    records[:, :, 0] = [[i, 1, 2] for i in range(len(names))]
    files = {name: each.tobytes() for name, each in zip(names, records, strict=True)}
    write_archive(path, files, "cifar-10-batches-bin/")
    return records


NAMES = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]


def test_archive_is_read_as_written_by_hand(tmp_path):
    records = archive(tmp_path / "a.tar.gz", NAMES[::-1])[::-1]
    (x, y), (x_test, y_test) = read_cifar10(tmp_path / "a.tar.gz")
    assert (x.shape, x_test.shape) == ((15, 3, 32, 32), (3, 3, 32, 32))
    assert y.tolist() == [label for part in records[:5] for label in part[:, 0]]
    assert y_test.tolist() == records[5][:, 0].tolist()
    assert x[3, 2, 4, 5] == records[1][0, 1 + 2 * 1024 + 4 * 32 + 5]  # blue, row 4, column 5
    archive(tmp_path / "b.tar.gz", NAMES[:5])
    with pytest.raises(
        DamagedFileError, match=r"does not contain test_batch\.bin.*runner data fetch cifar10"
    ):
        read_cifar10(tmp_path / "b.tar.gz")


def test_stand_in_has_images_within_bounds():
    problem = load_problem("cifar10", simulated=True, n_train=200, n_test=50)
    assert (problem.train.x.shape, problem.test.x.shape) == ((200, 3072), (50, 3072))
    assert (problem.image_shape, problem.n_classes, problem.bounds) == ((3, 32, 32), 10, (0.0, 1.0))
    assert 0 <= problem.train.x.min() < problem.train.x.max() <= 1
    assert len(problem.train.y.unique()) == 10


def test_pixels_and_bounds_are_standardised():
    plain, whole = (
        load("cifar10", simulated=True, n_train=200, standardised=s)[0] for s in (False, True)
    )
    assert_close(whole.train.x.mean(), double(0.0), atol=1e-6, rtol=0)
    assert_close(whole.train.x.std(correction=0), double(1.0), rtol=1e-6, atol=0)
    low, high = whole.bounds
    assert_close(whole.test.x * (high - low) ** -1 - low / (high - low), plain.test.x)
