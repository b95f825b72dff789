"""``make bench``: every benchmark of this folder, one after the other, each a ratio against a named
peer.

A benchmark is ``scripts/bench_<name>.py``; it asserts equal results first, times interleaved with
one thread, and ends with one JSON line ``{"benchmark", "peer", "ratios": {case: [median, low,
high]}, "goals": {case: least ratio}}``.  Where its peer is not installed (``make bench-peers``) it
says so, and the others go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from scripts.peers.installed import ABSENT, TARGET


def main() -> int:
    """Runs all benchmarks, or those named; exit code 1 when one fails or a goal is missed."""
    here, out = Path(__file__).parent, Console()
    named = sys.argv[1:] or sorted(p.stem.removeprefix("bench_") for p in here.glob("bench_*.py"))
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    table = Table("benchmark", "peer", "case", "ratio (median)", "low to high", "goal", "")
    worst = 0
    for name in named:
        command = [sys.executable, "-m", f"scripts.bench_{name}"]
        result = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, env=environment, cwd=here.parent
        )
        out.print(result.stdout, markup=False, highlight=False)
        lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
        if result.returncode == ABSENT:
            table.add_row(name, "", "", "", "", "", f"no peer: {TARGET}")
            continue
        if result.returncode or not lines:
            table.add_row(name, "", "", "", "", "", "failed")
            worst = 1
            continue
        report = json.loads(lines[-1])
        for case, (median, low, high) in report["ratios"].items():
            goal = report["goals"].get(case)
            reached = goal is None or median >= goal
            worst = max(worst, int(not reached))
            verdict = "" if goal is None else ("reached" if reached else "MISSED")
            table.add_row(
                name,
                report["peer"],
                case,
                f"{median:.2f}x",
                f"{low:.2f} to {high:.2f}",
                f"{goal or ''}",
                verdict,
            )
    out.print(table)
    return worst


if __name__ == "__main__":
    raise SystemExit(main())
