"""A server failure at any call neither loses nor duplicates content; uploaded parts are marked."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import get_args

import pytest
import yaml
from support.runs.made_records import STARTED, client_of, history, make_record, read_all_runs, write

from runner.record.facts import RunState, read
from runner.record.lines import read_lines
from runner.tracking.mirror import Mirror
from runner.tracking.push import ENDED
from runner.tracking.store import connect, tracking_uri

READS = {"get_run", "get_experiment_by_name", "search_runs", "search_experiments"}


class Dying:
    """Client of a server that fails at the n-th call, before executing it or before replying."""

    def __init__(self, client, n: int, after: bool):
        self.client = client
        self.n = n
        self.after = after
        self.calls = 0

    def __getattr__(self, name):
        def call(*args, **kwargs):
            self.calls += 1
            if self.calls == self.n and not (self.after and name not in READS):
                raise ConnectionError(f"died before {name}")
            answer = getattr(self.client, name)(*args, **kwargs)
            if self.calls == self.n:
                raise ConnectionError(f"died after {name}")
            return answer

        return call


def dies_and_is_synced(outputs: Path, signature: str, n: int, after: bool) -> int:
    """A record with a first push that fails at call n and a complete second push; returns the number of
    calls of the first."""
    folder = make_record(outputs, signature, replicates=2)
    client = connect(tracking_uri(outputs))
    dying = Dying(client, n, after)
    assert Mirror(folder, outputs, dying).push() == (dying.calls < n)
    assert Mirror(folder, outputs, client).push()
    return dying.calls


def assert_all_in_once(outputs: Path, signatures: list[str]) -> None:
    stored = read_all_runs(connect(tracking_uri(outputs)))
    assert len(stored) == 3 * len(signatures)  # the run and its two replicates
    by = {
        s: json.dumps([e for e in stored if s[:8] in e[0]]).replace(s, "S").replace(s[:8], "S")
        for s in signatures
    }
    by = {s: json.loads(text) for s, text in by.items()}
    first = by[signatures[0]]
    assert [entry[1] for entry in first] == ["FINISHED"] * 3
    assert len(first[1][5]["train/loss"]) == 6
    for signature in signatures:
        assert by[signature] == first, signature


def places(outputs: Path) -> list[tuple[int, bool]]:
    """All points of failure of a server, after one complete push."""
    calls = dies_and_is_synced(outputs, "whole000", 10**6, False)
    assert calls > 15
    return [(n, after) for n in range(1, calls + 1) for after in (False, True)]


@pytest.mark.parametrize("share", [3, pytest.param(None, marks=pytest.mark.slow)])
def test_push_survives_a_server_failure_at_each_call(outputs, share):
    everywhere = places(outputs)
    lost = (2, True)  # the reply to the creation of the run
    chosen = (
        [lost, *random.Random(0).sample([place for place in everywhere if place != lost], share)]
        if share
        else everywhere
    )
    names = [f"{n:04d}{'after' if after else 'first'}" for n, after in chosen]
    for name, (n, after) in zip(names, chosen, strict=True):
        dies_and_is_synced(outputs, name, n, after)
    assert_all_in_once(outputs, ["whole000", *names])


def test_repeated_lines_of_a_resumed_run_are_stored_once(outputs):
    folder = make_record(outputs, state="running")
    facts = read(folder)
    lines = read_lines(folder)
    write(folder, lines[:7], facts)  # killed at step 5
    assert Mirror(folder, outputs).push()
    again = [
        entry if entry["step"] <= 2 else entry | {"time": entry["time"] + 100.0} for entry in lines
    ]
    write(folder, again[:3], facts)  # rewound to a checkpoint at step 2
    assert Mirror(folder, outputs).push()
    write(folder, again, facts | {"state": "done", "seconds": 120.0})
    mirror = Mirror(folder, outputs)
    assert mirror.push()
    run = client_of(outputs).get_run(mirror.run_id)
    assert [p.step for p in history(client_of(outputs), run, "train/loss")] == [1, 2, 3, 4, 5, 6]
    assert [p.step for p in history(client_of(outputs), run, "evaluation/rmse")] == [2, 4, 6]


def test_interrupted_run_is_running_again_then_finished(outputs):
    calls = []
    for state, ended in (
        ("interrupted", STARTED),
        ("running", None),
        ("done", "2026-11-01T13:00:00+00:00"),
    ):
        open_yet = {} if state == "done" else {"finished": {"0": {"rmse": 1.0}}, "result": {}}
        folder = make_record(outputs, state=state, ended=ended, replicates=2, **open_yet)
        mirror = Mirror(folder, outputs)
        assert mirror.push()
        client = client_of(outputs)
        runs = client.search_runs([client.get_run(mirror.run_id).info.experiment_id])
        calls.append({run.data.tags.get("replicate", "whole"): run.info.status for run in runs})
    assert calls == [
        {"whole": "KILLED", "0": "FINISHED", "1": "KILLED"},
        {"whole": "RUNNING", "0": "FINISHED", "1": "RUNNING"},
        {"whole": "FINISHED", "0": "FINISHED", "1": "FINISHED"},
    ]


def test_every_final_state_maps_to_mlflow():
    assert ENDED.keys() == {*get_args(RunState), "crashed"} - {"pending", "running"}


def test_removed_store_is_refilled(outputs, empty_store):
    folder = make_record(outputs)
    assert Mirror(folder, outputs).push()
    stored = read_all_runs(client_of(outputs))
    (outputs / "mlflow.db").rename(outputs / "old.db")
    shutil.copy(empty_store, outputs / "mlflow.db")
    assert Mirror(folder, outputs).push()
    assert read_all_runs(client_of(outputs)) == stored


def test_alternating_stores_hold_each_run_once(outputs, empty_store, tmp_path, monkeypatch):
    folder = make_record(outputs)
    assert Mirror(folder, outputs).push()
    stored = read_all_runs(client_of(outputs))
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
        assert Mirror(folder, outputs).push()
        assert len(read_all_runs(client_of(tmp_path))) == 1
    assert Mirror(folder, outputs).push()
    assert read_all_runs(client_of(outputs)) == stored


def test_run_deleted_in_mlflow_is_not_restored(outputs):
    folder = make_record(outputs, state="running", ended=None)
    mirror = Mirror(folder, outputs)
    assert mirror.push()
    client_of(outputs).delete_run(mirror.run_id)
    make_record(outputs)
    assert Mirror(folder, outputs).push()
    assert client_of(outputs).search_runs(["0", "1"]) == []


def test_fresh_runs_restart_while_an_old_push_continues(outputs, monkeypatch):
    folder = make_record(outputs)
    client = connect(tracking_uri(outputs))
    log_inputs = client.log_inputs

    def taken_away(*args, **kwargs):
        (folder / "mlflow.json").unlink()
        return log_inputs(*args, **kwargs)

    monkeypatch.setattr(client, "log_inputs", taken_away)
    assert not Mirror(folder, outputs, client).push()
    assert not (folder / "mlflow.json").exists()


def test_changed_parameter_does_not_stop_a_push(outputs):
    folder = make_record(outputs)
    # the parameters are stored, but no reply arrived
    dying = Dying(connect(tracking_uri(outputs)), 4, after=True)
    assert not Mirror(folder, outputs, dying).push()
    config = yaml.safe_load((folder / "config.yaml").read_text()) | {"data_dir": "elsewhere"}
    (folder / "config.yaml").write_text(yaml.safe_dump(config | {"description": "otherwise"}))
    mirror = Mirror(folder, outputs)
    assert mirror.push(), mirror.trouble
    assert client_of(outputs).get_run(mirror.run_id).data.params["data_dir"] == "elsewhere"


@pytest.mark.parametrize("name", ["a %41 b", "what?x=1", "x#y 'q\" b"])
def test_output_folder_of_any_name_holds_its_database(tmp_path, name, empty_store, no_pusher):
    outputs = tmp_path / name
    outputs.mkdir()
    shutil.copy(empty_store, outputs / "mlflow.db")
    folder = make_record(outputs)
    (folder / "figures").mkdir()
    (folder / "figures" / "a %41?.png").write_bytes(b"png")
    mirror = Mirror(folder, outputs)
    assert mirror.push(), mirror.trouble
    assert (outputs / "mlflow.db").is_file()
    assert [path.name for path in tmp_path.iterdir()] == [name]  # no folder with MLflow's spelling
    files = connect(tracking_uri(outputs)).list_artifacts(mirror.run_id, "figures")
    assert [file.path for file in files] == ["figures/a %41?.png"]
    assert len(list(outputs.glob("mlartifacts/*/artifacts/figures/a %41[?].png"))) == 1
