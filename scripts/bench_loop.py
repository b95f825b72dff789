"""What a run costs beside its steps: loop, record, checkpoints and MLflow, where a step takes a
millisecond.

    python scripts/bench_loop.py                 # 10,000 steps, one JSON line

An ordinary run of ``+experiment=mog`` with tracking, all as configured but for evaluations.  What
the training thread does from the end of a step to the beginning of the next is the cost, less what
a bare ``for`` over the same steps does there (states of before are freed, the clock is read); the
ratio is the share of its time that it would leave to steps of a millisecond, its median and
quartiles over the tenths of the run.  Time is the thread's own CPU: what else the machine does is
nobody's cost, and what waits for a disk is counted by ``bench_saving``.  That the run was recorded,
kept and handed over is asserted afterwards."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("OMP_NUM_THREADS", "1")

from components import registry
from runner.commands import app
from runner.compose.overrides import compose
from runner.tracking import sync

STEP, PARTS, GOAL = 1e-3, 10, 0.99


def between(stamps: list[float], steps: int) -> list[float]:
    """Seconds from the end of each step to the beginning of the next."""
    assert len(stamps) == 2 * steps
    return [after - before for before, after in zip(stamps[1::2], stamps[2::2], strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=10_000)
    steps = parser.parse_args().steps
    # of the training thread's CPU, at the beginning and at the end of each step
    stamps: list[float] = []
    first: list[Any] = []  # the method, and what its first step is given
    sgld: Any = registry.get("inference", "sgld")
    original_step = sgld.step

    def timed(self: Any, *given: Any) -> Any:
        if not first:
            first.extend((self, *given))
        begin = time.thread_time()
        result = original_step(self, *given)
        stamps.extend((begin, time.thread_time()))
        return result

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        with mock.patch.object(sgld, "step", timed):
            outcome = app.attempt(
                *compose(
                    ["+experiment=mog", f"steps={steps}", "eval_every=null", f"output_dir={folder}"]
                )
            )
        assert outcome.code == 0, outcome.message
        (record,) = (path.parent for path in Path(folder).glob("mog/*/run.json"))
        lines = [json.loads(line) for line in (record / "metrics.jsonl").read_text().splitlines()]
        assert sum(line["phase"] == "train" for line in lines) > 1, "nothing was recorded"
        assert any((record / "checkpoints").iterdir()), "nothing was kept"
        assert sync.main(["sync", "--output-dir", folder]) == 0
    gaps = between(stamps, steps)
    stamps.clear()
    with mock.patch.object(sgld, "step", timed):
        method, state, batch, rng = first
        for _ in range(steps):
            state, info = method.step(state, batch, rng)
    assert set(info) == {"log_joint", "grad_norm", "step_size", "draws"}
    bare = statistics.fmean(between(stamps, steps))
    size = len(gaps) // PARTS
    costs = [
        statistics.fmean(gaps[start : start + size]) - bare
        for start in range(0, size * PARTS, size)
    ]
    shares = [STEP / (STEP + cost) for cost in costs]
    share = [statistics.median(shares), *statistics.quantiles(shares, n=4)[::2]]
    print(f"{steps} steps, {len(lines)} lines recorded: {1e6 * statistics.median(costs):.1f} µs beside each and the "
          f"{1e6 * bare:.1f} µs of a bare loop, {100 * (1 - share[0]):.2f} % beside steps of {1e3 * STEP:g} ms")  # fmt: skip
    ratios = {"time left to steps of 1 ms": share}
    print(
        json.dumps(
            {
                "benchmark": "loop",
                "peer": "the steps alone",
                "ratios": ratios,
                "goals": dict.fromkeys(ratios, GOAL),
            }
        )
    )


if __name__ == "__main__":
    main()
