"""year and airlines: rows, scores, and simulated replacements of unavailable files."""

import zipfile

import numpy as np
import pytest
import torch
from support.runs.configured import F64, load_problem
from torch.testing import assert_close

from components.datasets.benchmarks import airlines, year
from components.errors import ConfigMismatchError


@pytest.mark.parametrize(("name", "inputs"), [("year", 90), ("airlines", 8)])
def test_training_and_test_rows_are_disjoint(name, inputs):
    problem = load_problem(name, simulated=True, n_train=100, n_test=40)
    assert problem.name == f"{name}-sim"
    assert problem.train.x.shape == (100, inputs)
    assert problem.test.x.shape == (40, inputs)
    rows = {tuple(row.tolist()) for row in problem.train.x}
    assert not rows & {tuple(row.tolist()) for row in problem.test.x}
    assert_close(problem.train.y.mean(0), torch.zeros(1, dtype=F64), atol=1e-9, rtol=0)
    assert float(problem.y_std) > 1  # scores are in the units of the label


def test_too_many_requested_rows_are_refused():
    with pytest.raises(
        ConfigMismatchError,
        match=r"dataset\.n_train: .* 515,335 without dataset\.n_test=10; lower either",
    ):
        load_problem("year", simulated=True, n_train=515_336, n_test=10)


def test_archive_has_the_year_in_the_first_column(tmp_path):
    rows = np.random.default_rng(0).normal(size=(5, 91)).round(4)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(year.MEMBER, "\n".join(",".join(map(str, row)) for row in rows))
    read = year._read(tmp_path / "a.zip")
    assert np.array_equal(read[:, -1], rows[:, 0])
    assert np.array_equal(read[:, :-1], rows[:, 1:])


def test_flights_are_late_more_often_at_night():
    flights = airlines.simulated_flights(20_000)
    night = flights[:, 3] > 1100
    late = flights[:, -1] > 30
    assert late[night].mean() > 2 * late[~night].mean()
    assert flights[:, -1].max() > 200  # no upper end
