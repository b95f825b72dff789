"""Measured rows from scikit-learn and from files in the data folder."""

import numpy as np
import pytest
from scipy.io import savemat
from support.runs.configured import load
from torch.testing import assert_close

from components.datasets.rows.measured_rows import FACE, read_rows
from components.errors import DataUnavailableError


def test_wines_have_the_requested_number_of_rows():
    problem, _ = load("measured_rows", set="wine", n_train=40)
    assert problem.n == 40
    assert problem.test.n_rows == 53
    assert problem.train.x.mean(0).abs().max() < 1e-9


def test_oil_has_its_own_test_rows(tmp_path):
    rng = np.random.default_rng(0)
    parts = {f"Data{part}": rng.normal(size=(5, 12)) for part in ("Trn", "Tst")}
    labels = {f"Data{part}Lbls": np.eye(3)[[0, 1, 2, 1, 0]] for part in ("Trn", "Tst")}
    savemat(tmp_path / "oil.mat", parts | labels)
    table = read_rows(tmp_path / "oil.mat", "oil_flow")
    assert table.n_test == 5
    assert table.classes is not None
    assert table.classes.tolist() == [0, 1, 2, 1, 0] * 2
    assert np.allclose(table.x[5:], parts["DataTst"])


def test_faces_are_in_the_unit_interval(tmp_path):
    images = np.full((3, FACE[0] * FACE[1]), 51, dtype=np.uint8)
    np.savez(tmp_path / "faces.npz", images=images)
    table = read_rows(tmp_path / "faces.npz", "frey_faces")
    assert table.classes is None
    assert_close(float(table.x.max()), 0.2)


def test_missing_file_is_named():
    with pytest.raises(DataUnavailableError):
        load("measured_rows", set="oil_flow")
