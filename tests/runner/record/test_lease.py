"""Lease of a run: one holder at a time, independent of clocks, with takeover by a single process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from runner.errors import ConfigError
from runner.record import lease
from runner.record.lease_holder import NAME, LeaseHolder, clock, place, process_start
from runner.record.record import Record

GAME = ("+experiment=friend_or_foe", "smoke=true")
AWAY = LeaseHolder("other", "other boot space", 1, "1", "t" * 32)  # process 1 exists here too


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder of a run, with short timeouts for tests."""
    for name, seconds in (
        ("HEARTBEAT_SECONDS", 0.2),
        ("HEARTBEAT_TIMEOUT_SECONDS", 1.0),
        ("POLL_SECONDS", 0.05),
    ):
        monkeypatch.setattr(lease, name, seconds)
    return tmp_path


def write_lease(folder, holder: LeaseHolder, age: float = 0.0):
    """Lease with a heartbeat ``age`` seconds ago by the clock of the file system."""
    path = folder / NAME
    path.write_text(json.dumps(holder.__dict__))
    touched = clock(folder) - age
    os.utime(path, (touched, touched))
    return path


def held_by_process(folder):
    """Separate process that acquires the lease."""
    code = "import sys, time; from pathlib import Path; from runner.record import lease; "
    code += "it = lease.take_lease(Path(sys.argv[1]), 's'); print(1, flush=True); time.sleep(60)"
    return subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE)


def test_lease_of_a_dead_local_process_expires_at_once(folder):
    process = held_by_process(folder)
    assert process.stdout.readline()
    path = folder / NAME
    assert lease.is_leased(path)
    with pytest.raises(
        ConfigError, match=rf"run s is already active \(process {process.pid}\); wait"
    ):
        lease.take_lease(folder, "s")
    process.kill()
    process.wait()
    began = time.monotonic()
    assert not lease.is_leased(path)  # despite a recent heartbeat
    mine = lease.take_lease(folder, "s")
    assert time.monotonic() - began < 0.5
    mine.close()
    assert list(folder.iterdir()) == []


def test_reused_process_id_holds_no_lease(folder):
    parent = os.getppid()
    assert not lease.is_leased(write_lease(folder, LeaseHolder("h", place(), parent, "0", "t")))
    assert lease.is_leased(
        write_lease(folder, LeaseHolder("h", place(), parent, process_start(parent), "t"))
    )


@pytest.mark.parametrize("skew", [-7200.0, 7200.0])
def test_clock_differences_do_not_matter(folder, monkeypatch, skew):
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + skew)
    assert lease.is_leased(write_lease(folder, AWAY, age=0.5))
    assert not lease.is_leased(write_lease(folder, AWAY, age=1.5))
    lease.take_lease(folder, "s").close()


def test_lease_renewed_elsewhere_is_respected(folder):
    path = write_lease(folder, AWAY)
    done = threading.Event()
    thread = threading.Thread(target=lease._send_heartbeats, args=(path, AWAY, done))
    thread.start()
    try:
        with pytest.raises(ConfigError, match="process 1 on other"):
            lease.take_lease(folder, "s")
    finally:
        done.set()
        thread.join()
    began = time.monotonic()
    lease.take_lease(folder, "s").close()  # no more heartbeats
    assert 0.5 < time.monotonic() - began < 5


def test_one_of_many_waiters_takes_over(folder):
    write_lease(folder, AWAY, age=2)
    won: list[lease.Lease] = []
    refused: Counter[str] = Counter()
    ready = threading.Barrier(8)

    def wait() -> None:
        ready.wait()
        try:
            won.append(lease.take_lease(folder, "s"))
        except ConfigError:
            refused["already active"] += 1

    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert refused["already active"] == 7
    won[0].check()
    won[0].close()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("content", ["", "4711", "\x00\xff"])
def test_invalid_lease_is_replaced(folder, content):
    (folder / NAME).write_text(content)
    assert not lease.is_leased(folder / NAME)
    lease.take_lease(folder, "s").close()


def test_leftovers_of_a_killed_waiter_are_ignored(folder):
    path = write_lease(folder, AWAY, age=2)
    claim = path.with_name(f"{NAME}.{AWAY.token}.claim")
    claim.write_text(json.dumps(AWAY.__dict__))
    os.utime(claim, (1, 1))
    lease.take_lease(folder, "s").close()
    assert list(folder.iterdir()) == []


def test_run_without_its_lease_writes_nothing(make_job):
    """A suspended machine resumes after another process has taken over its run."""
    job = make_job(*GAME)
    mine = Record.open(job)
    mine.line(1, 0, 0.1, "train", {"a": 1.0})
    mine.flush()
    mine.line(2, 0, 0.2, "train", {"a": 2.0})
    mine.save(state="running")
    write_lease(job.folder, AWAY)
    contents = {p.name: p.read_bytes() for p in job.folder.iterdir() if p.is_file()}
    for write in (lambda: mine.save(state="done"), mine.flush, mine.sync):
        with pytest.raises(lease.LeaseLostError, match="lease lost: process 1 on other "):
            write()
    mine.close()
    assert {p.name: p.read_bytes() for p in job.folder.iterdir() if p.is_file()} == contents


TWO = """
import os, sys, time
from pathlib import Path
from runner.errors import ConfigError
from runner.record import lease
from runner.record.lease_holder import NAME, LeaseHolder, clock, place, process_start
lease.HEARTBEAT_SECONDS, lease.HEARTBEAT_TIMEOUT_SECONDS, lease.POLL_SECONDS = 0.2, 1.0, 0.05
folder, name = Path(sys.argv[1]), sys.argv[2]
until = time.monotonic() + 4
while time.monotonic() < until:
    try:
        mine = lease.take_lease(folder, "s")
    except ConfigError:
        time.sleep(0.02)
        continue
    inside = folder / "inside"
    os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails where the other one is inside
    with (folder / "turns").open("a") as file: file.write(name)
    time.sleep(0.05)
    inside.unlink()
    mine.close()
    time.sleep(0.05)
"""


@pytest.mark.slow
def test_two_machines_never_run_the_same_folder(folder):
    """Two process and host namespaces with equal process ids use one folder."""
    apart = ["unshare", "--uts", "--pid", "--mount", "--fork", "--mount-proc", "sh", "-c"]
    if subprocess.run([*apart, "hostname one"], capture_output=True).returncode:
        pytest.skip("needs the right to make namespaces (unshare)")
    both = [
        subprocess.Popen(
            [
                *apart,
                f'hostname {name}; exec "$@"',
                "sh",
                sys.executable,
                "-c",
                TWO,
                str(folder),
                name,
            ]
        )
        for name in "ab"
    ]
    assert [process.wait(60) for process in both] == [0, 0]
    turns = Counter((folder / "turns").read_text())
    assert set(turns) == {"a", "b"}
    assert min(turns.values()) > 1
