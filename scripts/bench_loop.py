"""What a run costs beside its steps: loop, record, checkpoints and MLflow, where a step takes a millisecond.

    python scripts/bench_loop.py                 # 10,000 steps, one JSON line

An ordinary run of ``+experiment=mog`` with tracking, all as configured but for evaluations, of which each step is drawn out to
a millisecond of CPU.  What the training thread does from the end of a step to the beginning of the next is the cost; it is
given as the share of CPU time that is left to the steps, for each tenth of the run, and of CPU, because what else the machine
does is nobody's cost.  (``bench_saving`` counts what waits for a disk.)  That the run was recorded, kept and handed over is
asserted afterwards."""

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
from runner import app
from runner.compose.overrides import compose
from runner.tracking import sync

STEP, PARTS, GOAL = 1e-3, 10, 0.99


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=10_000)
    steps = parser.parse_args().steps
    stamps: list[float] = []  # of the training thread's CPU, at the beginning and at the end of each step
    sgld: Any = registry.get("inference", "sgld")
    own = sgld.step

    def drawn_out(self: Any, *given: Any) -> Any:
        begin = time.thread_time()
        found = own(self, *given)
        while time.thread_time() - begin < STEP:
            pass
        stamps.extend((begin, time.thread_time()))
        return found

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        with mock.patch.object(sgld, "step", drawn_out):
            done = app.attempt(*compose(["+experiment=mog", f"steps={steps}", "eval_every=null", f"output_dir={folder}"]))
        assert done.code == 0, done.message
        (record,) = (path.parent for path in Path(folder).glob("mog/*/run.json"))
        lines = [json.loads(line) for line in (record / "metrics.jsonl").read_text().splitlines()]
        assert sum(line["phase"] == "train" for line in lines) > 1, "nothing was recorded"
        assert any((record / "checkpoints").iterdir()), "nothing was kept"
        assert sync.main(["sync", "--output-dir", folder]) == 0
    assert len(stamps) == 2 * steps
    inside = [after - before for before, after in zip(stamps[::2], stamps[1::2], strict=True)]
    beside = [after - before for before, after in zip(stamps[1::2], stamps[2::2], strict=False)]
    size = steps // PARTS
    parts = [slice(at, at + size) for at in range(0, size * PARTS, size)]
    left = [sum(inside[p]) / (sum(inside[p]) + sum(beside[p])) for p in parts]
    share = [statistics.median(left), *statistics.quantiles(left, n=4)[::2]]
    print(f"{steps} steps of {1e3 * STEP:g} ms, {len(lines)} lines recorded: {100 * (1 - share[0]):.2f} % beside the steps "
          f"({1e6 * sum(beside) / len(beside):.1f} µs each)")  # fmt: skip
    ratios = {"time left to steps of 1 ms": share}
    print(json.dumps({"benchmark": "loop", "peer": "the steps alone", "ratios": ratios, "goals": dict.fromkeys(ratios, GOAL)}))


if __name__ == "__main__":
    main()
