"""One process uploads all runs of an output folder: runs do not wait for MLflow, none is missed, and no
process remains."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from support.runs.made_records import client_of, line, make_record, write

from runner.commands import app
from runner.compose.compose import compose
from runner.disk.lock import lock_with_retries
from runner.execution.screen import show_run as console
from runner.record.facts import read
from runner.record.lease import take_lease
from runner.record.lines import read_lines
from runner.tracking import handover, pusher
from runner.tracking.handover import LOCK, Handover
from runner.tracking.marks import read_marks
from runner.tracking.pusher import Pusher
from runner.tracking.request import requests
from runner.tracking.store import OWN


class Clock:
    """Clock advanced by the test."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_requested_run_is_pushed(outputs):
    folder = make_record(outputs, state="running", ended=None)
    facts = read(folder)
    lines = read_lines(folder)
    clock = Clock()
    run = Handover(folder, outputs)
    at_work = Pusher(outputs, clock)
    write(folder, lines[:2], facts)
    lease = take_lease(folder, folder.name)
    run.begin()
    assert at_work.look() == 1
    assert read_marks(folder, OWN).lines == {"train": 2}
    write(folder, lines[:4], facts)
    os.utime(folder / "run.json", ns=(1, 1))
    at_work.watched[folder].facts = 1  # run.json is unchanged: only lines are new
    assert at_work.look() == 1
    assert read_marks(folder, OWN).lines == {"train": 2}  # too soon
    clock.now += pusher.EVERY
    at_work.look()
    assert read_marks(folder, OWN).lines == {"train": 3, "evaluation": 2}
    write(folder, lines, facts | {"state": "done", "ended": facts["started"]})
    assert not run.complete
    at_work.look()  # immediately
    assert run.complete
    run.end()
    assert at_work.look() == 1
    lease.close()
    assert at_work.look() == 0
    assert requests(outputs) == []


def test_killed_run_is_pushed_too(outputs):
    folder = make_record(outputs, state="running", ended=None)
    (folder / ".lock").touch()
    code = (
        "import os, signal, sys; from pathlib import Path; from runner.tracking import handover; "
        "handover.start_pusher = lambda _: None; handover.Handover(Path(sys.argv[1]), Path(sys.argv[2])).begin(); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code, str(folder), str(outputs)]).returncode
        == -signal.SIGKILL
    )
    assert len(requests(outputs)) == 1
    assert Pusher(outputs).look() == 0
    run = client_of(outputs).get_run(read_marks(folder, OWN).run_id)
    assert (run.info.status, run.data.tags["state"]) == ("KILLED", "crashed")


def test_unavailable_server_is_retried_rarely_and_at_the_end(outputs, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    tried = []
    push = pusher.Mirror.push
    monkeypatch.setattr(
        pusher.Mirror, "push", lambda self: tried.append(self.folder.name) or push(self)
    )
    processes = [
        Handover(make_record(outputs, name, state="running", ended=None), outputs)
        for name in ("a" * 12, "b" * 12)
    ]
    leases = [take_lease(run.folder, run.folder.name) for run in processes]
    for run in processes:
        run.begin()
    clock = Clock()
    at_work = Pusher(outputs, clock)
    for minute in range(11):
        clock.now = 60.0 * minute
        for run in processes:
            write(run.folder, [line(minute + 1, 0, "train")], read(run.folder))
        at_work.look()
    # after 0, 5 and 10 minutes; never for the second run, which would wait as long
    assert tried == ["a" * 12] * 3
    assert processes[0].trouble
    for run, lease in zip(processes, leases, strict=True):
        run.end()
        lease.close()
    tried.clear()
    assert at_work.look() == 0  # runner sync uploads the rest
    assert tried == ["a" * 12]
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    processes[1].end()
    assert Pusher(outputs).look() == 0
    assert read_marks(processes[1].folder, OWN).run_id


def silent() -> socket.socket:
    """A server that accepts connections and never responds."""
    server = socket.create_server(("127.0.0.1", 0), backlog=100)
    server.listen()
    return server


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Context that fails after a time limit."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def test_unresponsive_server_hardly_delays_a_run(tmp_path, monkeypatch, capsys):
    with closing(silent()) as server:
        monkeypatch.setenv(
            "MLFLOW_TRACKING_URI", f"http://me:secret@127.0.0.1:{server.getsockname()[1]}"
        )
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
        folder = make_record(tmp_path, state="running", ended=None)
        run = Handover(folder, tmp_path)
        with at_most(1.0):
            for _ in range(101):  # as often as in 50 minutes
                run.begin()
        make_record(tmp_path)
        with at_most(handover.TIMEOUT_SECONDS + 0.5):
            run.end()
        console.show_whereabouts(folder, run)
        assert "secret" not in capsys.readouterr().out
        handover._pusher_by_folder[tmp_path].terminate()


def assert_nobody_stays(output_dir: Path) -> None:
    for process in handover._pusher_by_folder.values():
        process.wait(90)
    assert requests(output_dir) == []


@pytest.mark.slow
def test_separate_process_pushes_runs(outputs, monkeypatch, capsys):
    """It pushes a run and the following run, and no process remains."""
    monkeypatch.undo()
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(handover, "TIMEOUT_SECONDS", 60.0)  # long timeout for slow machines
    for seed in (0, 1):
        given = ["+experiment=friend_or_foe", "smoke=true", "offline=true", f"seed={seed}"]
        assert app.attempt(compose([*given, f"output_dir={outputs}"])).code == 0
    output = capsys.readouterr().out
    assert output.count("MLflow   runner ui ") == 2
    client = client_of(outputs)
    runs = client.search_runs([client.get_experiment_by_name("friend_or_foe").experiment_id])
    assert [run.info.status for run in runs] == ["FINISHED"] * 2
    assert_nobody_stays(outputs)


def test_simultaneous_runs_start_one_pusher(outputs):
    (outputs / ".tracking").mkdir()
    first = lock_with_retries(outputs / ".tracking" / LOCK)
    assert first is not None
    assert lock_with_retries(outputs / ".tracking" / LOCK) is None
    first.close()
    again = lock_with_retries(outputs / ".tracking" / LOCK)
    assert again is not None
    again.close()


def test_offline_mode_contacts_no_server(make_job, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    game = ["+experiment=friend_or_foe", "smoke=true", "tracking=true"]
    folder = Path("any/run")
    assert handover.create_handover(make_job(*game, "offline=true").settings, folder) is None
    assert handover.create_handover(make_job(*game, "offline=false").settings, folder) is not None
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert handover.create_handover(make_job(*game, "offline=true").settings, folder) is not None


def test_run_ends_without_a_message_of_the_pusher(tmp_path):
    """The pusher may continue, but all files opened by the run are closed."""
    ran = subprocess.run(
        [
            sys.executable,
            "-W",
            "error::ResourceWarning",
            "-c",
            "from runner.commands.cli import main; raise SystemExit(main())",
            "+experiment=friend_or_foe",
            "smoke=true",
            f"output_dir={tmp_path}",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert "ResourceWarning" not in ran.stderr + ran.stdout
    assert "Exception ignored" not in ran.stderr
