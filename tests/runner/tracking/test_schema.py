"""A database left incomplete by a killed process is replaced by the next one."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from support.runs.made_records import client_of, make_record

from runner.errors import ConfigError
from runner.system import doctor, ui
from runner.tracking.mirror import Mirror
from runner.tracking.request import requests
from runner.tracking.schema import latest_version, read_schema
from runner.tracking.store import tracking_uri

# Forks a process that creates the database, kills it after several fractions of the time of a
# complete creation, and prints the number of processes killed before their end.
KILLS = """
import os, signal, sys, time
from pathlib import Path
from runner.tracking.mirror import open_client
folder, spare, n = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
def make(folder, seconds):
    child = os.fork()
    if child == 0:
        open_client(folder)
        os._exit(0)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] != 0
open_client(spare / "first")
began = time.monotonic()
make(spare, None)
whole = time.monotonic() - began
print(sum(make(folder, whole * (k + 0.5) / n) for k in range(n)))
"""


@pytest.mark.parametrize("n", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_store_survives_kills_during_its_creation(tmp_path, n):
    outputs = tmp_path / "outputs"
    folder = make_record(outputs)
    for name in ("spare", "spare/first"):
        (tmp_path / name).mkdir()
    words = [sys.executable, "-c", KILLS, str(outputs), str(tmp_path / "spare"), str(n)]
    killed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert int(killed) >= n // 2
    assert Mirror(folder, outputs).push()
    assert read_schema(outputs / "mlflow.db") == (latest_version(), 1)
    assert [path.name for path in outputs.glob(".mlflow.db.*")] == []


def make_unfinished(file) -> None:
    """Database between two of MLflow's migrations."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE registered_model_tags (key)")
        database.execute("CREATE TABLE runs (id)")


def test_unfinished_store_is_replaced_from_all_records(tmp_path):
    folders = [make_record(tmp_path, name) for name in ("a" * 12, "b" * 12)]
    make_unfinished(tmp_path / "mlflow.db")
    (finding,) = doctor.store(tmp_path)
    assert (finding.level, finding.fix) == ("problem", "runner sync creates a new one")
    with pytest.raises(ConfigError, match="schema unfinished, MLflow requires"):
        ui.check(tracking_uri(tmp_path), 0)
    assert Mirror(folders[0], tmp_path).push()
    assert (tmp_path / "mlflow.db.damaged").exists()
    assert [request.name for request in requests(tmp_path)] == [f"made.{f.name}" for f in folders]
    (finding,) = doctor.store(tmp_path)
    assert (finding.level, finding.found.rpartition(", ")[2]) == ("ok", "1 run")
    assert client_of(tmp_path).get_experiment_by_name("made") is not None


def test_store_with_runs_is_never_set_aside(tmp_path):
    folder = make_record(tmp_path)
    assert Mirror(folder, tmp_path).push()
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = 'other'")
    (finding,) = doctor.store(tmp_path)
    assert (finding.level, finding.fix.split()[:3]) == ("problem", ["run", "mlflow", "db"])
    with pytest.raises(ConfigError, match="schema other, MLflow requires"):
        ui.check(tracking_uri(tmp_path), 0)
    Mirror(folder, tmp_path).push()
    assert read_schema(tmp_path / "mlflow.db")[1] == 1
    assert not (tmp_path / "mlflow.db.damaged").exists()
