"""A study on a real local Ray head with a killed worker: the run's results match an undisturbed
run."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from engine_studies import LONG, launch_study, results, run_undisturbed, study
from support.runs.local_servers import free_port
from support.runs.waiting import eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.engines,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="no Ray here: pip install 'bayes-runner[ray]'",
    ),
]


@pytest.fixture
def head():
    """Process and port of a head with one core, on the loopback address."""
    port = free_port()
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
    address = ["--node-ip-address=127.0.0.1", f"--port={port}"]
    size = ["--num-cpus=2", "--object-store-memory=100000000", "--include-dashboard=false"]
    process = subprocess.Popen(
        [*command, *address, *size, "--disable-usage-stats"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "RAY_worker_niceness": "0"},  # 15: slow on a busy machine
        start_new_session=True,
    )

    def answers():
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        eventually(answers, 120)
        yield process.pid, port
    finally:
        process.terminate()  # its raylet, its store and its workers end with it
        try:
            process.wait(60)
        finally:
            for number in descendants(process.pid):
                os.kill(number, signal.SIGKILL)


def descendants(process):
    """Processes below a process, with their command lines."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # the process has ended
            continue
        parents[int(entry.name)] = (int(fields[1]), words)
    below = {}
    generation = {process}
    while generation:
        generation = {number for number, (parent, _) in parents.items() if parent in generation}
        below |= {number: parents[number][1] for number in generation}
    return below


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="finds processes in /proc")
def test_run_of_killed_worker_resumes_in_another(head, tmp_path):
    number, port = head
    seeds = 2
    address = f"+hydra.launcher.ray.init.address=127.0.0.1:{port}"
    with launch_study(tmp_path, study(seeds, LONG), "hydra/launcher=ray", address) as command:
        eventually(lambda: command.is_training(seeds))
        workers = [n for n, words in descendants(number).items() if words.startswith("ray::one")]
        os.kill(workers[0], signal.SIGKILL)
        assert command.wait() == 0, command.output
        assert command.logs.count("resumed at step") == 1
    assert results(tmp_path) == run_undisturbed(tmp_path / "here", seeds, LONG)
