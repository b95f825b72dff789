"""Omniglot: the images of the literature as stored in their file, and eight alphabets averaged from
Lake's scans."""

import io
import zipfile
from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from PIL import Image
from support.runs.configured import load_problem
from support.runs.real_files import FOLDER, find_or_skip

from components.datasets.images import omniglot
from components.datasets.images.omniglot import average_pixels, read_parts, read_whole
from components.errors import DamagedFileError, SimulatedDataWarning

pytestmark = pytest.mark.usefixtures("own_cache")


def test_pixels_are_means_over_squares():
    """Each pixel is expanded to 4 × 4, and blocks of 15 × 15 are averaged."""
    images = np.random.default_rng(0).random((3, 105, 105)) > 0.5
    fine = images.repeat(4, 1).repeat(4, 2)  # [3, 420, 420]
    expected = fine.reshape(3, 28, 15, 28, 15).mean((2, 4))
    assert_allclose(average_pixels(images, 28), expected, atol=1e-6)
    assert average_pixels(np.ones((1, 105, 105)), 28).max() <= 1


load = partial(load_problem, "images", dtype=torch.float32)


def archive(folder, name, scans):
    path = folder / name
    with zipfile.ZipFile(path, "w") as opened:
        for key, scan in scans.items():
            content = io.BytesIO()
            Image.fromarray(scan).save(content, "png")
            opened.writestr(f"{path.stem}/{key}", content.getvalue())
        opened.writestr(f"{path.stem}/readme.txt", "no image")
    return path


def test_each_scan_occurs_once_split_by_drawer_and_ink_is_one(tmp_path):
    paper = np.ones((105, 105), bool)
    scans = {
        f"{a}/character0{c}/00_{d:02}.png": paper.copy()
        for a in ("B", "A")
        for c in (1, 2)
        for d in range(1, 21)
    }
    for i, key in enumerate(sorted(scans)):
        scans[key][:15, : 15 * (i % 7)] = False  # a stroke that distinguishes images
    twice = {key: scan for key, scan in scans.items() if key.startswith("B")}
    paths = archive(tmp_path, "one.zip", scans), archive(tmp_path, "two.zip", twice)
    (train, kinds), (test, held) = read_parts(paths)
    assert (train.shape, test.shape) == ((60, 28, 28), (20, 28, 28))
    assert kinds.tolist() == [0] * 30 + [1] * 30
    assert held.tolist() == [0] * 10 + [1] * 10
    strokes = [4 * (i % 7) for i in range(80)]
    drawer = [i % 20 + 1 for i in range(80)]
    assert train[:, 0].sum(1).tolist() == [
        s for s, d in zip(strokes, drawer, strict=True) if d <= 15
    ]
    assert test[:, 3].sum(1).tolist() == [s for s, d in zip(strokes, drawer, strict=True) if d > 15]
    assert not train[:, 4:].any()


def whole(folder, images, **changes):
    """A file in the format of the literature, with a stroke across the top of its first image."""
    from scipy.io import savemat

    upright = np.zeros((28, 28))
    upright[0] = 1
    content = {}
    for name, n in images.items():
        # column by column, as MATLAB stores it
        content[name] = np.repeat(upright.T.reshape(-1, 1), n, 1)
        content[name.replace("data", "") + "target"] = np.eye(50)[:, np.arange(n) % 50]
    path = folder / omniglot.WHOLE
    path.parent.mkdir(parents=True)
    savemat(path, content | changes)
    return path


def test_whole_set_is_upright_and_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(omniglot, "IN_WHOLE", {"data": 6, "testdata": 3})
    path = whole(tmp_path / "a", {"data": 6, "testdata": 3})
    (train, _), (test, kinds) = read_whole(path)
    assert (train.shape, test.shape, kinds.tolist()) == ((6, 28, 28), (3, 28, 28), [0, 1, 2])
    assert (train[:, 0] == 1).all()
    assert not train[:, 1:].any()
    problem = load(tmp_path / "a", set="omniglot", binarised="threshold", n_train=2)
    assert (problem.name, problem.n, problem.test.n_rows) == ("omniglot-threshold", 2, 3)
    for i, wrong in enumerate(
        (
            {"data": np.zeros((784, 5))},
            {"data": np.zeros((3, 5))},
            {"testdata": np.full((784, 3), 2.0)},
        )
    ):
        with pytest.raises(DamagedFileError, match="chardata"):
            read_whole(whole(tmp_path / f"b{i}", {"data": 6, "testdata": 3}, **wrong))
    path.write_text("<html>log in first</html>")
    with pytest.raises(DamagedFileError, match=r"chardata.*yburda"):
        read_whole(path)


def test_stand_in_of_eight_alphabets_has_its_own_name():
    find_or_skip(omniglot.PARTS[0])
    with pytest.warns(SimulatedDataWarning, match=r"omniglot is unavailable.*omniglot-partial"):
        problem = load(FOLDER, set="omniglot", binarised="threshold")
    assert (problem.name, problem.n, problem.test.n_rows) == (
        "omniglot-partial-threshold",
        3630,
        1210,
    )
    assert problem.train.x.mean() == pytest.approx(0.080, abs=0.001)
    asked = load(FOLDER, set="omniglot-partial", binarised="threshold")
    assert torch.equal(asked.train.x, problem.train.x)
    assert problem.test_classes.unique().tolist() == list(range(8))
