"""``runner sync`` reports invalid records and continues, refuses other folders, and masks passwords."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.runs.made_records import client_of, line, make_record

from runner.commands import cli
from runner.disk.secrets import mask_secrets
from runner.errors import ConfigError
from runner.tracking import mirror, sync
from runner.tracking.handover import Handover
from runner.tracking.marks import read_marks
from runner.tracking.store import OWN, lock_file

PASSWORDS = {
    "http://me:secret@host:5000/x": "http://me:***@host:5000/x",
    "postgresql://me:se:cr@et@host/db": "postgresql://me:***@host/db",
    "mysql+pymysql://:secret@host/db": "mysql+pymysql://:***@host/db",
    "http://host/?token=secret&x=1": "http://host/?token=***&x=1",
    "API request to http://me:secret@host/api failed": "API request to http://me:***@host/api failed",
    "http://host:5000": "http://host:5000",
    "http://host:5000/#/experiments/1 by me@host": "http://host:5000/#/experiments/1 by me@host",
    "http://[::1]:5000/x": "http://[::1]:5000/x",
    "postgresql://me:pa/s s?#@host/db failed": "postgresql://me:***@host/db failed",
    "https://ghp_0123456789@host/x": "https://***@host/x",
    "postgresql://me@host/db?sslpassword=secret&a=1": "postgresql://***@host/db?sslpassword=***&a=1",
    "mssql://h/?odbc_connect=DRIVER={a b};UID=me;PWD=secret": "mssql://h/?odbc_connect=***",
    "http://host/?x=1&AuthToken=secret": "http://host/?x=1&AuthToken=***",
    "no driver for DRIVER={a b};PWD={se;cret};UID=me": "no driver for DRIVER={a b};PWD=***;UID=me",
    "Authorization: Bearer abcdefgh12345": "Authorization: Bearer ***",
    "'mysql://a:b@h/d' and 'mysql://c:d@h/d'": "'mysql://a:***@h/d' and 'mysql://c:***@h/d'",
    "mysql://a:b@h/d, mysql://c:d/@h/d": "mysql://a:***@h/d, mysql://c:***@h/d",
    "sqlite:////home/me/mlflow.db": "sqlite:////home/me/mlflow.db",
    "mail me@host: now": "mail me@host: now",
}


@pytest.mark.parametrize("text", PASSWORDS)
def test_passwords_are_masked(text):
    assert mask_secrets(text) == PASSWORDS[text]


def run_sync(outputs: Path, *words: str) -> int:
    return sync.main(["sync", "--output-dir", str(outputs), *words])


BAD_LINE = json.dumps(line(1, 0, "train") | {"metrics": {"loss": "small"}}) + "\n"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("run.json", "{"),
        ("run.json", '{"state": "done"}'),
        ("config.yaml", "a: ["),
        ("config.yaml", None),
        ("metrics.jsonl", BAD_LINE),
        ("figures/a.png", None),  # a link that leads out of the record
    ],
)
def test_sync_continues_after_a_bad_record_and_names_it(outputs, capsys, file, text):
    good = [make_record(outputs, name) for name in ("aaaaaaaaaaaa", "cccccccccccc")]
    bad = make_record(outputs, "bbbbbbbbbbbb")
    if text is not None:
        (bad / file).write_text(text)
    elif file == "config.yaml":
        (bad / file).unlink()
    else:
        (bad.parent / "secret.txt").write_text("secret")
        (bad / "figures").mkdir()
        (bad / file).symlink_to(bad.parent / "secret.txt")
    assert run_sync(outputs) == 1
    printed = capsys.readouterr()
    assert f"{bad}: " in printed.err
    assert "1 run is skipped" in printed.err
    assert "2 runs are in sqlite" in printed.out
    assert "Traceback" not in printed.err
    assert all(read_marks(folder, OWN).ended for folder in good)
    client = client_of(outputs)
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    assert len(client.search_runs(experiments, "status = 'FINISHED'")) == 2


def test_unknown_run_is_refused(outputs, monkeypatch, capsys):
    make_record(outputs)
    with pytest.raises(ConfigError, match="ffff: no such run"):
        run_sync(outputs, "ffff")
    monkeypatch.setattr(sys, "argv", ["runner", "sync", "--output-dir", str(outputs), str(outputs)])
    with pytest.raises(SystemExit) as exit:
        cli.main()
    assert exit.value.code == 2
    assert "no such run" in capsys.readouterr().err
    assert run_sync(outputs, "0123") == 0


def test_unavailable_server_is_reported(outputs, monkeypatch, capsys):
    folders = [make_record(outputs, name) for name in ("aaaaaaaaaaaa", "bbbbbbbbbbbb")]
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("MLFLOW_TRACKING_URI", "http://me:secret@127.0.0.1:9")
        assert run_sync(outputs) == 1
        output = capsys.readouterr()
        assert "2 runs are left for the next runner sync" in output.err
        assert "me:***@127.0.0.1:9" in output.err
        assert "secret" not in output.out + output.err + "".join(
            (f / "mlflow.json").read_text() for f in folders[:1]
        )
    assert run_sync(outputs) == 0
    assert "2 runs are in sqlite" in capsys.readouterr().out


def test_store_that_refuses_one_run_gets_the_others(outputs, monkeypatch, capsys):
    make_record(outputs, "aaaaaaaaaaaa", choice={"dataset": "x" * 10**6})
    make_record(outputs, "bbbbbbbbbbbb")
    monkeypatch.setattr(mirror, "mask_secrets", lambda text: text[:100])
    assert run_sync(outputs) == 1
    assert "1 run is in sqlite" in capsys.readouterr().out


@pytest.mark.slow
def test_two_processes_push_a_hundred_runs_each(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    for p in range(2):
        for i in range(100):
            make_record(tmp_path, f"{p}{i:03d}00000000", overrides=[f"seed={p}{i:03d}"])
    parts = [[str(f) for f in (tmp_path / "made").glob(f"{p}*")] for p in range(2)]
    # Each has a hundred runs and the first ten of the other; runs pushed by both are stored once.
    given = [parts[p] + sorted(parts[1 - p])[:10] for p in range(2)]
    words = [sys.executable, "-m", "runner.commands.cli", "sync", "--output-dir", str(tmp_path)]
    processes = [
        subprocess.Popen([*words, *folders], stdout=subprocess.PIPE, text=True) for folders in given
    ]
    outputs = [process.communicate(timeout=500)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert all("110 runs are in" in text for text in outputs)
    client = client_of(tmp_path)
    (made,) = [e for e in client.search_experiments() if e.name == "made"]
    stored_runs = client.search_runs([made.experiment_id], max_results=1000)
    assert len(stored_runs) == 200
    assert len({run.info.run_name for run in stored_runs}) == 200
    for run in stored_runs:
        assert run.info.status == "FINISHED"
        assert len(client.get_metric_history(run.info.run_id, "train/loss")) == 6


def test_unavailable_database_is_reported_at_once(outputs, capsys):
    folder = make_record(outputs)
    (outputs / "mlflow.db").unlink()
    (outputs / "mlflow.db").mkdir()
    began = time.monotonic()
    assert run_sync(outputs) == 1
    assert time.monotonic() - began < 10
    assert "unable to open database file; 1 run is left" in capsys.readouterr().err
    handover = Handover(folder, outputs)
    handover.begin()
    assert handover.trouble.endswith("unable to open database file")
    handover.end()
    (outputs / "mlflow.db").rmdir()
    (outputs / "mlflow.db").write_bytes(b"no database" * 200)
    assert run_sync(outputs) == 1
    assert "file is not a database" in capsys.readouterr().err


def test_sync_gives_up_a_store_held_by_another_process(outputs, capsys):
    make_record(outputs)
    with lock_file(outputs / ".mlflow.lock"):
        began = time.monotonic()
        assert run_sync(outputs, "--timeout", "3") == 1
    output = capsys.readouterr()
    assert time.monotonic() - began < 9
    held = ".mlflow.lock is still held by another upload after 2 s"
    assert f"{held}; 1 run is left for the next runner sync" in output.err.replace("\n", " ")


def test_endless_answer_of_a_server_times_out(outputs, capsys, monkeypatch):
    make_record(outputs)
    monkeypatch.setattr(mirror.Mirror, "push", lambda self: time.sleep(60))
    assert run_sync(outputs, "--timeout", "1") == 1
    assert "not uploaded after 1 s (--timeout); 1 run is left" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="must be 1 to 86400"):
        run_sync(outputs, "--timeout", "0")
