"""A study on a real Slurm without accounting, with jobs that are cancelled, run out of time, are
preempted, or run on a node that dies. Every run matches the undisturbed one.
"""

import re
import signal
import subprocess
import sys
from math import ceil

import pytest
from engine_studies import (
    LONG,
    ROOT,
    SHORT,
    launch_study,
    longest_seconds,
    results,
    run_undisturbed,
    study,
)
from real_slurm import RealSlurm, SlurmAbsentError, unpack
from support.runs.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.engines]

KEYS = ("hydra/launcher=slurm", "hydra.launcher.mem_gb=1")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    try:
        slurm = RealSlurm(unpack(folder / "unpacked"), folder / "one")
    except SlurmAbsentError as error:
        pytest.skip(f"no Slurm here: {error}")
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()


@pytest.fixture
def slurm(cluster):
    yield cluster
    cluster.ask("scancel", "--user=root")
    cluster.ask("scancel", "--signal=KILL", "--full", "--user=root")
    eventually(lambda: not cluster.ask("squeue", "--noheader"))


@pytest.fixture(scope="module")
def short_results(tmp_path_factory):
    return run_undisturbed(tmp_path_factory.mktemp("short") / "here", 4, SHORT)


@pytest.fixture(scope="module")
def local_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("long") / "here"


@pytest.fixture(scope="module")
def long_results(local_folder):
    return run_undisturbed(local_folder, 1, LONG)


@pytest.fixture(scope="module")
def two_minutes(local_folder, long_results, tmp_path_factory):
    """Steps of a run that takes two minutes on this machine, and its results."""
    steps = LONG * ceil(120 / longest_seconds(local_folder))
    return steps, run_undisturbed(tmp_path_factory.mktemp("beyond") / "here", 1, steps)


def steps_resumed_at(text):
    return [int(number) for number in re.findall(r"resumed at step (\d+)", text)]


def test_cancelled_jobs_are_reported_and_others_finish(slurm, tmp_path, short_results):
    """An array of 4 jobs: one is cancelled while it runs, one before it starts."""
    with launch_study(tmp_path, study(4, SHORT), *KEYS, **slurm.environment) as command:
        eventually(lambda: command.is_training(1))
        slurm.ask("scancel", command.jobs[3])
        running = eventually(lambda: slurm.running() & set(command.jobs)).pop()
        slurm.ask("scancel", running)
        assert command.wait() == 1
        assert "Traceback" not in command.output
        assert "Bypassing" not in command.output
        assert "Slurm does not respond" not in command.output
        assert f"slurm {running} CANCELLED: cancelled" in command.output
        assert f"slurm {command.jobs[3]} FORGOTTEN" in command.output
        assert len(results(tmp_path)) == 2
    with launch_study(tmp_path, study(4, SHORT), *KEYS, **slurm.environment) as repeat:
        assert repeat.wait() == 0, repeat.output
    assert results(tmp_path) == short_results


def test_job_over_its_limit_is_requeued_until_done(slurm, tmp_path, two_minutes):
    """The only checkpoint is written at the warning before the limit."""
    steps, expected = two_minutes
    limit = ("hydra.launcher.timeout_min=1", "hydra.launcher.signal_delay_s=10")
    with launch_study(tmp_path, study(1, steps), *KEYS, *limit, **slurm.environment) as command:
        assert command.wait(meanwhile=slurm.start_delayed_jobs) == 0, command.output
        resumed = steps_resumed_at(command.logs)
    assert resumed
    assert resumed == sorted(set(resumed))  # each submission resumed
    assert results(tmp_path) == expected


def test_preempted_job_resumes(slurm, tmp_path, long_results):
    with launch_study(tmp_path, study(1, LONG), *KEYS, **slurm.environment) as command:
        eventually(lambda: command.is_training(1))
        slurm.ask(
            "sbatch", "--partition=high", "--exclusive", "--output=/dev/null", "--wrap=sleep 5"
        )
        eventually(lambda: not slurm.running() & set(command.jobs))
        assert command.wait(meanwhile=slurm.start_delayed_jobs) == 0, command.output
        assert steps_resumed_at(command.logs)
    assert results(tmp_path) == long_results


def test_run_on_failed_node_restarts(slurm, tmp_path, long_results):
    """The node's daemon and all processes of the job are killed, and the node comes back."""
    with launch_study(tmp_path, study(1, LONG), *KEYS, **slurm.environment) as command:
        eventually(lambda: command.is_training(1))
        slurm.kill_node()
        eventually(lambda: not slurm.running())
        slurm.start_node()
        slurm.wait_for_node("idle", "mixed", "mix", "alloc")
        assert command.wait(meanwhile=slurm.start_delayed_jobs) == 0, command.output
    assert results(tmp_path) == long_results


def test_cancelled_job_is_not_reported_as_queued(slurm, tmp_path):
    with launch_study(tmp_path, study(1, LONG), *KEYS, **slurm.environment) as command:
        eventually(lambda: command.is_training(1))
        command.process.send_signal(signal.SIGINT)
        assert command.wait() == 130
        assert "1 go on in the queue of slurm" in command.output
        (number,) = command.jobs
    with launch_study(tmp_path, study(1, LONG), "--status", **slurm.environment) as status:
        assert status.wait() == 0
        assert f"running (slurm {number})" in " ".join(status.output.split())
    slurm.ask("scancel", number)
    eventually(lambda: number not in slurm.running())
    eventually(lambda: not slurm.ask("squeue", "--noheader"))
    with launch_study(tmp_path, study(1, LONG), "--status", **slurm.environment) as status:
        assert status.wait() == 0
        assert "slurm" not in status.output.replace(str(tmp_path), "")


def test_sweep_runs_as_one_array(slurm, tmp_path, short_results):
    """The jobs of ``runner -m`` run in Slurm, with the results of local processes."""
    overrides = [*study(1, SHORT)["overrides"], "+experiment=bnn_uci", "seed=0,1"]
    command = [sys.executable, "-m", "runner.commands.cli", "-m", *overrides]
    done = subprocess.run(
        [*command, *KEYS, f"output_dir={tmp_path}/outputs"],
        cwd=tmp_path,
        env={**slurm.environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(tmp_path) == {seed: short_results[seed] for seed in (0, 1)}
    numbers = {path.name for path in tmp_path.rglob(".submitit/*_[01]")}
    assert len(numbers) == 2, "not jobs of one array"
