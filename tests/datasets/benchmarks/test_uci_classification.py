"""uci_classification: rows, splits, standardisation, and replacements of absent files."""

import gzip

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from support.runs.configured import F64, load_problem
from support.runs.real_files import FOLDER, find_or_skip
from torch.testing import assert_close

from components.datasets.benchmarks.uci_classification import SOURCES, _read, simulated_labels
from components.datasets.tables.uci_regression import split_rows
from components.errors import (
    ConfigMismatchError,
)


@pytest.fixture(autouse=True)
def _unread(own_cache):
    _read.cache_clear()


def load_set(**keys):
    return load_problem("uci_classification", **{"set": "crabs", "simulated": True} | keys)


@pytest.mark.parametrize("name", SOURCES)
def test_simulated_rows_have_the_shape_and_classes_of_the_set(name):
    source = SOURCES[name]
    x, y = simulated_labels(name, source)
    assert x.shape == (source.shape.rows, source.shape.inputs)
    assert y.sum() == source.ones
    problem = load_set(set=name)
    assert problem.name == "uci-classification-sim"
    assert len(problem.train.y) == round(0.9 * len(y))
    assert len(problem.train.y) + len(problem.test.y) == len(y)
    # labels are learnable: the nearest training row predicts better than the majority class
    nearest = torch.cdist(problem.test.x, problem.train.x).argmin(1)
    right = (problem.train.y[nearest] == problem.test.y).double().mean()
    assert right > max(source.ones, len(y) - source.ones) / len(y) - 0.05


@pytest.mark.parametrize("name", SOURCES)
def test_genuine_rows(name):
    source = SOURCES[name]
    x, y = _read(*find_or_skip(source.file), name)
    assert x.shape == (source.shape.rows, source.shape.inputs)
    assert y.sum() == source.ones
    problem = load_set(set=name, simulated=False, data_dir=FOLDER, replicate=2)
    kept, scored = split_rows(len(x), 2)
    assert problem.name == "uci-classification"
    assert torch.isfinite(problem.train.x).all()
    assert_array_equal(problem.test.y[:, 0].numpy(), y[scored])
    varies = x[kept].std(0) > 0
    expected = (x[scored] - x[kept].mean(0))[:, varies] / x[kept][:, varies].std(0)
    assert_allclose(problem.test.x[:, varies].numpy(), expected, atol=1e-9)


def test_splits_equal_those_published_with_ionosphere():
    (published,) = find_or_skip("classification/permutations_iono_aadm.txt.gz")
    with gzip.open(published, "rt") as lines:
        orders = np.loadtxt(lines, delimiter=",", dtype=int)
    for split in (0, 7, 19):
        assert np.array_equal(np.concatenate(split_rows(351, split)), orders[split])


def test_lines_are_read_in_the_format_of_the_set(tmp_path):
    def read(name, text):
        path = tmp_path / f"{name}.csv"
        path.write_text(text)
        x, y = _read(path, name)
        return x.tolist(), y.tolist()

    cells = (
        "1000025,5,1,1,1,2,1,3,1,1,2\n1057013,8,4,5,1,2,?,7,3,1,4\n1017122,8,10,10,8,7,10,9,7,1,4\n"
    )
    assert read("breast", cells) == (
        [[5, 1, 1, 1, 2, 1, 3, 1, 1], [8, 10, 10, 8, 7, 10, 9, 7, 1]],
        [0, 1],
    )
    shells = "rownames,sp,sex,index,FL,RW,CL,CW,BD\n1,B,M,1,8.1,6.7,16.1,19,7\n200,O,F,50,23.1,20.2,46.2,52.5,21.1\n"
    assert read("crabs", shells) == (
        [[0, 8.1, 6.7, 16.1, 19, 7], [1, 23.1, 20.2, 46.2, 52.5, 21.1]],
        [1, 0],
    )


def test_replicates_take_their_splits_for_any_seed():
    assert torch.equal(load_set(replicate=4).test.x, load_set(seed=3, split=4).test.x)
    assert not torch.equal(load_set(replicate=4).test.x, load_set(replicate=5).test.x)
    problem = load_set()
    assert_close(problem.train.x.std(0, correction=0), torch.ones(6, dtype=F64))


def test_invalid_requests_are_refused():
    with pytest.raises(ConfigMismatchError, match="replicates: crabs has only 20 splits"):
        load_set(replicate=20)
