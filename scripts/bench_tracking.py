"""What MLflow costs a run: a smoke run that is pushed against the same with ``tracking=false``, and
the training of a run whose tracking server lets everybody in and never answers against the same
without it.

Wall clock.  The first run of an output folder finds no database and nobody who pushes; the next one
finds both.  Each may take a second longer than without.  Of a run whose server hangs, the share of
its time that is left to it is told: the calls that hand it over, thirty times as often as ever, and
the wait at its end are timed inside the run.  That both were pushed, and that nothing was, is
asserted afterwards."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest import mock

os.environ.setdefault("OMP_NUM_THREADS", "1")

from runner.commands import app
from runner.compose.overrides import compose
from runner.execution import duties
from runner.tracking import sync
from runner.tracking.handover import Handover
from runner.tracking.marks import read_marks

ROUNDS = 5
ALLOWED = 1.0  # seconds
SMOKE = ["+experiment=friend_or_foe", "smoke=true", "offline=true"]
LONG = ["+experiment=mog", "steps=20000", "eval_every=2000"]  # a minute, or less


def smoke(folder: Path, seed: int, tracking: bool) -> float:
    """Seconds of one smoke run in a process of its own."""
    overrides = [
        *SMOKE,
        f"output_dir={folder}",
        f"seed={seed}",
        f"tracking={str(tracking).lower()}",
    ]
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "runner.commands.cli", *overrides],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began


def of_smoke_runs() -> dict[str, tuple[list[float], float]]:
    """Ratios without to with tracking, and the least that a second longer leaves."""
    times: dict[str, list[float]] = {"without": [], "the first run": [], "the next run": []}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as parent:
        for i in range(ROUNDS):
            folder = Path(parent) / str(i)
            times["without"].append(smoke(folder, 0, tracking=False))
            times["the first run"].append(smoke(folder, 1, tracking=True))
            times["the next run"].append(smoke(folder, 2, tracking=True))
            assert sync.main(["sync", "--output-dir", str(folder)]) == 0
    without = times.pop("without")
    goal = statistics.median(without) / (statistics.median(without) + ALLOWED)
    return {
        f"{case} of a folder": ([w / t for w, t in zip(without, seconds, strict=True)], goal)
        for case, seconds in times.items()
    }


@contextmanager
def timed(name: str, spent: list[float]) -> Iterator[None]:
    method = vars(Handover)[name]

    def call(self: Handover) -> None:
        began = time.perf_counter()
        method(self)
        spent.append(time.perf_counter() - began)

    with mock.patch.object(Handover, name, call):
        yield


def of_a_server_that_never_answers() -> float:
    """The share of a run's time that is left to it."""
    durations: list[float] = []
    with (
        closing(socket.create_server(("127.0.0.1", 0), backlog=100)) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        mock.patch.dict(
            os.environ, {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{server.getsockname()[1]}"}
        ),
        mock.patch.object(duties, "PUSH_INTERVAL_SECONDS", duties.PUSH_INTERVAL_SECONDS / 30),
        timed("begin", durations),
        timed("end", durations),
    ):
        began = time.perf_counter()
        outcome = app.attempt(*compose([*LONG, f"output_dir={folder}"]))
        took = time.perf_counter() - began
        assert outcome.code == 0, outcome.message
        (record,) = Path(folder).glob("mog/*/")
        assert read_marks(record, os.environ["MLFLOW_TRACKING_URI"]).run_id is None
    assert len(durations) > 2, "the run was too short"
    return 1 - sum(durations) / took


def main() -> None:
    ratios = of_smoke_runs()
    ratios["a server that never answers"] = [of_a_server_that_never_answers()], 0.99
    spread = {case: [statistics.median(r), min(r), max(r)] for case, (r, _) in ratios.items()}
    goals = {case: goal for case, (_, goal) in ratios.items()}
    for case, (median, low, high) in spread.items():
        print(f"{case:<32} {median:.3f} ({low:.3f} to {high:.3f}), at least {goals[case]:.3f}")
    print(
        json.dumps(
            {"benchmark": "tracking", "peer": "without MLflow", "ratios": spread, "goals": goals}
        )
    )


if __name__ == "__main__":
    main()
