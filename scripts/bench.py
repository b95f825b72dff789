"""``make bench``: run the benchmarks of ``scripts/benchmarks``, each a ratio against a named peer.

    python -m scripts.bench sgld hmc     # only these
    python -m scripts.bench --smoke      # a quick test with tiny sizes
    python -m scripts.bench --page bench.md

A benchmark ends with one JSON line ``{"benchmark", "peer", "ratios": {case: [median, low, high]},
"goals": {case: least ratio}}``.  A benchmark without an installed peer (``make bench-peers``) is
skipped with a note.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from scripts.benchmarks.harness import read_table
from scripts.pages import format_table
from scripts.peers.installed import ABSENT, TARGET

FOLDER = Path(__file__).parent / "benchmarks"
HEADER = ("benchmark", "peer", "case", "ratio (median)", "low to high", "goal", "")


class Row(NamedTuple):
    """A line of the table."""

    benchmark: str
    peer: str = ""
    case: str = ""
    ratio: str = ""
    spread: str = ""
    goal: str = ""
    verdict: str = ""


def to_rows(name: str, returncode: int, output: str) -> Iterator[Row]:
    """Rows from the output of a benchmark."""
    lines = [line for line in output.splitlines() if line.startswith("{")]
    if returncode == ABSENT:
        yield Row(name, verdict=f"no peer: {TARGET}")
    elif returncode or not lines:
        yield Row(name, verdict="failed")
    else:
        report = json.loads(lines[-1])
        for case, (median, low, high) in report["ratios"].items():
            goal = report["goals"].get(case)
            verdict = "" if goal is None else "reached" if median >= goal else "MISSED"
            spread = f"{low:.2f} to {high:.2f}"
            goal_text = "" if goal is None else f"{goal:.3g}"
            yield Row(name, report["peer"], case, f"{median:.2f}x", spread, goal_text, verdict)


def main() -> int:
    """Run the benchmarks; return 1 if one fails or misses a goal (goals are ignored with
    ``--smoke``)."""
    parser = argparse.ArgumentParser(prog="python -m scripts.bench")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--smoke", action="store_true", help="a quick test with tiny sizes")
    parser.add_argument("--page", type=Path, help="also write the table as Markdown")
    options = parser.parse_args()
    out = Console()
    rows: list[Row] = []
    for name in options.names or read_table():
        command = [sys.executable, "-m", "scripts.benchmarks", name]
        command += ["--smoke"] if options.smoke else []
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=FOLDER.parents[1])
        out.print(result.stdout, markup=False, highlight=False)
        rows += to_rows(name, result.returncode, result.stdout)
    table = Table(*HEADER)
    for row in rows:
        table.add_row(*row)
    out.print(table)
    if options.page:
        options.page.write_text(f"{format_table(HEADER, rows)}\n", encoding="utf-8")
    bad = {"failed"} if options.smoke else {"failed", "MISSED"}
    return int(any(row.verdict in bad for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
