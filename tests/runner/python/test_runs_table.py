"""``runner runs``: the frame of runs is printed and written as Parquet, CSV and JSON."""

import json

import pandas as pd
import pytest
from support.runs.json_output import read_objects
from support.runs.made_records import make_record

from runner.commands.cli import _answer
from runner.python.frames import runs


@pytest.fixture
def outputs(tmp_path):
    make_record(tmp_path / "outputs", "a" * 12, replicates=2, seed=0)
    make_record(tmp_path / "outputs", "b" * 12, replicates=1, seed=1, state="failed")
    return str(tmp_path / "outputs")


@pytest.mark.parametrize(
    ("suffix", "read"),
    [
        ("parquet", pd.read_parquet),
        ("csv", pd.read_csv),
        ("json", lambda path: pd.DataFrame(json.loads(path.read_text()))),
    ],
)
def test_file_holds_the_frame_in_full_precision(outputs, tmp_path, suffix, read):
    path = tmp_path / f"runs.{suffix}"
    assert (
        _answer(["runs", "--to", str(path), "--setting", "model.width", "--output-dir", outputs])
        == 0
    )
    frame = read(path)
    expected = runs(outputs, settings=["model.width"])
    assert list(frame) == list(expected)
    for column in ("id", "rmse", "model.width"):
        assert frame[column].tolist() == expected[column].tolist()


def test_parquet_stores_settings_of_several_types(outputs, tmp_path):
    folder = make_record(tmp_path / "outputs", "c" * 12)
    (folder / "config.yaml").write_text("model: {name: bnn, width: [3, 4]}\n")
    path = tmp_path / "runs.parquet"
    assert (
        _answer(["runs", "--to", str(path), "--setting", "model.width", "--output-dir", outputs])
        == 0
    )
    assert pd.read_parquet(path)["model.width"].tolist() == ["3", "3", "[3, 4]"]


def test_filters_select_runs(outputs, capsys):
    assert _answer(["runs", "state=done", "--output-dir", outputs]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split("\t")[:3] == ["id", "experiment", "dataset"]
    assert line.startswith("aaaaaaaaaaaa\tmade")


def test_terminal_shows_the_newest_runs(outputs, capsys, monkeypatch):
    monkeypatch.setattr("runner.python.runs_table.NEWEST", 1)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    _answer(["runs", "--output-dir", outputs])
    printed = capsys.readouterr().out
    assert "the newest 1 of 2 runs" in printed
    assert "bbbbbbbb" in printed
    assert "aaaaaaaa" not in printed


@pytest.mark.parametrize(
    ("words", "seeds"),
    [
        ("seed=[0,1]", [0, 1]),
        ("made/aaaa bbbb", [0, 1]),
        ("made/aaaa id=aaaa", [0]),
        ("id=aaaa made/bbbb", []),
        ("aaaa bbbb state=failed", [1]),
        ("id=[aa,bb] seed=1", [1]),
    ],
)
def test_names_and_filters_both_apply(outputs, capsys, words, seeds):
    assert _answer(["runs", *words.split(), "--json", "--output-dir", outputs]) == 0
    assert [row["seed"] for row in read_objects("runs", capsys.readouterr().out)] == seeds


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["=done"], "runs: : unknown setting"),
        (["model.widht=3"], "runs: model.widht: unknown setting, did you mean"),
        (["parts=true"], "runs: parts: unknown setting"),
    ],
)
def test_invalid_requests_are_one_line(outputs, words, message, capsys):
    assert _answer(["runs", *words, "--output-dir", outputs]) == 2
    assert message in capsys.readouterr().err
