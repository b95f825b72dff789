"""Columns of a CSV file as a series, and every way in which the file can be wrong, in one line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from configured import component, load

from components.contracts.roles import Setting
from components.trouble import DamagedFile, DataUnavailable, Misfit

FILE = str(Path(__file__).parent.parent.parent / "fixtures" / "series.csv")


def test_columns_missing_cells_and_truth():
    problem, _ = load(
        "csv_series", replicates=2, path=FILE, columns=["pm25", "wind"], truth=["network", "wind"], skip=1, n_steps=5
    )
    expected = torch.tensor(
        [[5.2, 2.5], [math.nan, 2.1], [6.3, 1.9], [41.0, 2.2], [5.9, math.nan]], dtype=torch.float64
    )
    for r in range(2):
        torch.testing.assert_close(problem.observations[r], expected, equal_nan=True)
    assert problem.missing[0].tolist() == [False, True, False, False, True]
    assert problem.means[0, :, 0].tolist() == [4.4, 5.1, 5.0, 5.6, 5.7]
    assert problem.states is None
    assert problem.state_names == ["pm25", "wind"]


def test_the_name_changes_with_the_content(tmp_path):
    names = set()
    for content in ("y\n1\n2\n", "y\n1\n3\n"):
        (tmp_path / "mine.csv").write_text(content)
        dataset = component("dataset", "csv_series", path="mine.csv")
        names.add(dataset.identity(tmp_path, True))
        setting = Setting(tmp_path, torch.device("cpu"), torch.float64, 1, offline=True)
        assert dataset.load(None, setting).name in names
    assert len(names) == 2
    assert all(name.startswith("csv_series-mine-") for name in names)


@pytest.mark.parametrize(
    ("content", "keys", "error", "said"),
    [
        ("y\n1\n", {"columns": ["z"]}, Misfit, "dataset.columns=z: .*mine.csv has no such column; there are y"),
        ("y\n1\n", {"truth": ["z"]}, Misfit, "dataset.truth=z: .*mine.csv has no such column"),
        ("y\n1\n", {"truth": ["y", "y"]}, Misfit, "dataset.truth: names 2 columns, dataset.columns 1"),
        ("y\n1\nbad\n", {}, Misfit, "line 3: y is 'bad', no number; mend it, or add it to dataset.missing"),
        ("y,z\n1,2\n3\n", {}, DamagedFile, "line 3: 1 cells under 2 names"),
        ("y\n1\ninf\n", {}, Misfit, "line 3: y is 'inf', no number; mend it, or add it to dataset.missing"),
        ("y\n-Infinity\n", {}, Misfit, "line 2: y is '-Infinity', no number"),
        ("y\n1e999\n", {}, Misfit, "line 2: y is '1e999', no number"),
        ("y,z\n1,2\n", {"truth": ["z"], "missing": ["2"], "columns": ["x"]}, Misfit, "dataset.columns=x: "),
        ("y,z\n1,inf\n", {"truth": ["z"]}, Misfit, "line 2: z is 'inf', no number"),
        ("", {}, DamagedFile, "dataset.path=.*mine.csv: the file is empty, .* holds nothing; name another"),
        ("\n\n", {}, DamagedFile, "dataset.path=.*mine.csv: the file is empty, .* holds nothing"),
        ("y\n", {}, DamagedFile, "dataset.path=.*mine.csv: the file is empty, .* holds no line after its names"),
        ("y\n1\n", {"skip": 1}, Misfit, "has 0 lines after dataset.skip=1"),
        ("y\n1\n2\n", {"n_steps": 5}, Misfit, "dataset.n_steps=5: .* has 2 lines"),
        ('y\n"1\n', {}, DamagedFile, "no CSV file"),
        (b"y\n\xff\xfe\n", {}, DamagedFile, "no CSV file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, content, keys, error, said):
    path = tmp_path / "mine.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(error, match=said) as told:
        load("csv_series", path=str(path), **keys)
    assert "\n" not in str(told.value)


def test_no_file():
    with pytest.raises(DataUnavailable, match=r"dataset.path=gone.csv: no such file"):
        load("csv_series", path="gone.csv")
    with pytest.raises(DataUnavailable, match=r"dataset.path: not given; name a CSV file"):
        load("csv_series")
