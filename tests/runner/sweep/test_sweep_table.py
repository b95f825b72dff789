"""Table of a sweep: seeds of a setting share a row, failures are reported, and it can be printed
again."""

from __future__ import annotations

import io
import json
import math
import os
import statistics
import sys
from pathlib import Path

import pandas as pd
import pytest

from runner.errors import ConfigError
from runner.sweep import table
from runner.sweep.outcomes import (
    SWEEP_VARIABLE,
    JobOutcome,
    announce_sweep,
    note,
    read_outcomes,
    title,
)
from runner.terminal import tables
from runner.terminal.numbered import NumberedStream, number_lines


def write_record(folder: Path, **result: list[float]) -> Path:
    folder.mkdir(parents=True)
    finished = {str(r): {name: values[r] for name, values in result.items()} for r in range(2)}
    facts = {"state": "done", "finished": finished, "result": result, "seed": 0}
    (folder / "run.json").write_text(json.dumps(facts))
    return folder


def end_sweep(tmp_path: Path, monkeypatch) -> tuple[Path, list[JobOutcome]]:
    """Two rates with two seeds each, one failed job, and records in the same output folder."""
    sweep = tmp_path / "multirun" / "now"
    runs = tmp_path / "mine"
    message = "inference.lr=-1: out of range; must be > 0"
    first = write_record(runs / "a", rmse=[1.0, 2.0], **{"rmse/x": [9.0, 9.0]})
    outcomes = [
        JobOutcome(0, ["+experiment=mine", "inference.lr=1", "seed=0"], 0, "", first),
        JobOutcome(
            1,
            ["+experiment=mine", "inference.lr=1", "seed=1"],
            0,
            "",
            write_record(runs / "b", rmse=[4.0, 5.0]),
        ),
        JobOutcome(2, ["+experiment=mine", "inference.lr=-1", "seed=0"], 2, message, None),
        JobOutcome(10, ["+experiment=mine", "inference.lr=-1", "seed=1"], 130, "interrupted", None),
    ]
    monkeypatch.setenv(SWEEP_VARIABLE, str(sweep))
    for outcome in outcomes:
        note(outcome)
    return sweep, outcomes


def test_finished_jobs_are_read_also_from_a_moved_folder(tmp_path, monkeypatch):
    sweep, outcomes = end_sweep(tmp_path, monkeypatch)
    assert read_outcomes(sweep) == outcomes
    assert [o.state for o in outcomes] == ["done", "done", "failed", "interrupted"]
    (tmp_path / "elsewhere").mkdir()
    for name in ("multirun", "mine"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    outcomes_moved = read_outcomes(tmp_path / "elsewhere" / "multirun" / "now")
    assert outcomes_moved[0].folder == tmp_path / "elsewhere" / "mine" / "a"


def test_damaged_file_is_named(tmp_path, monkeypatch):
    sweep, _ = end_sweep(tmp_path, monkeypatch)
    (sweep / "jobs" / "0.json").write_text('{"number": 0}')
    with pytest.raises(ConfigError, match=r"jobs/0.json: invalid outcome .*; remove the file"):
        read_outcomes(sweep)


def test_seeds_share_a_row_with_statistics_over_replicates(tmp_path, monkeypatch, capsys):
    sweep, _ = end_sweep(tmp_path, monkeypatch)
    assert table.show(sweep) == 1
    shown = pd.read_csv(sweep / "sweep.csv", dtype={"seeds": str})
    assert shown["inference.lr"].tolist() == [1, -1]
    assert shown["seeds"].tolist() == ["0, 1", "0, 1"]
    assert shown["n"].tolist() == [4, 0]
    values = [1.0, 2.0, 4.0, 5.0]
    assert shown["rmse"][0] == statistics.mean(values)
    assert shown["rmse SE"][0] == pytest.approx(statistics.stdev(values) / 2, rel=1e-12)
    assert math.isnan(shown["rmse"][1])
    assert "rmse/x" not in shown.columns
    assert "experiment" not in shown.columns, "all rows have the same"
    assert shown["state"].tolist() == ["done", "1 failed, 1 interrupted"]
    printed = capsys.readouterr().out
    assert (
        "failed   job 2 (inference.lr=-1 seed=0): inference.lr=-1: out of range; must be > 0"
        in printed
    )
    assert "2 done, 1 failed, 1 interrupted" in printed
    assert "\n1\t0, 1\t3 ± 0.9129\tdone\t" in printed, (
        "tab-separated if the output is not a terminal"
    )
    assert "must be &gt; 0" in (sweep / "sweep.html").read_text()


@pytest.mark.parametrize("width", [80, 20])
def test_narrow_terminal_cuts_no_number(tmp_path, monkeypatch, capsys, width):
    sweep, outcomes = end_sweep(tmp_path, monkeypatch)
    path = outcomes[0].folder / "run.json"
    facts = json.loads(path.read_text())
    facts["result"] |= {f"score_{k}": [k + 0.123456, k + 0.234567] for k in range(3)}
    path.write_text(json.dumps(facts))
    monkeypatch.setattr(tables, "is_terminal", lambda _: True)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(table.out, "width", width)
    table.show(sweep)
    printed = capsys.readouterr().out
    assert "more scores" in printed
    cells = printed.partition("sweep.csv")[0]
    assert "…" not in cells.partition("more scores")[0]
    assert {"0.9129", "3", "±"} <= set(cells.split())


def test_smoke_runs_are_marked_on_terminal_csv_and_page(tmp_path, monkeypatch, capsys):
    sweep, outcomes = end_sweep(tmp_path, monkeypatch)
    monkeypatch.setattr(table.out, "width", 200)
    table.show(sweep)
    assert "smoke runs" not in capsys.readouterr().out + (sweep / "sweep.html").read_text()
    path = outcomes[0].folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"smoke": True}))
    table.show(sweep)
    shown = capsys.readouterr().out
    assert "done, smoke" in shown
    assert table.SMOKE_NOTE in shown
    assert pd.read_csv(sweep / "sweep.csv")["smoke"].tolist() == [True, False]
    page = (sweep / "sweep.html").read_text()
    assert "done, smoke" in page
    assert table.SMOKE_NOTE in page


def test_sweep_is_shown_again_by_its_folder(tmp_path, monkeypatch, capsys):
    sweep, _ = end_sweep(tmp_path, monkeypatch)
    assert table.main(["sweep", str(sweep)]) == 0
    assert "2 done, 1 failed" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="folder jobs/; sweeps are: now"):
        table.main(["sweep", str(tmp_path / "multirun")])


def test_jobs_receive_the_folder_of_the_sweep(tmp_path, monkeypatch):
    monkeypatch.delenv(SWEEP_VARIABLE, raising=False)
    with announce_sweep(tmp_path, ["seed"]):
        assert os.environ[SWEEP_VARIABLE] == str(tmp_path)
        assert title(3, ["+experiment=mog", "steps=10", "seed=1"]) == "job 3: seed=1"
    assert SWEEP_VARIABLE not in os.environ
    assert title(3, ["steps=10", "seed=1"]) == "job 3: steps=10, seed=1"


def test_lines_of_parallel_jobs_carry_their_number():
    stream = io.StringIO()
    out = NumberedStream(stream, 3)
    out.write("a\nb")
    assert stream.getvalue() == "[3] a\n"
    out.write("c\n\nd")
    out.close()
    assert stream.getvalue() == "[3] a\n[3] bc\n[3] \n[3] d\n"
    previous = sys.stdout
    with number_lines(1):
        assert not sys.stdout.isatty()
    assert sys.stdout is previous


def test_omitted_role_is_a_separate_value():
    outcome = JobOutcome(0, ["+experiment=x", "~attacker", "seed=1"], 0, "", None)
    assert outcome.values() == {"experiment": "x", "attacker": "null", "seed": "1"}
