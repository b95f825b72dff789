"""``make bench``: run the benchmarks of ``scripts/benchmarks``, each a ratio against a named peer.

    python -m scripts.bench sgld hmc     # only these
    python -m scripts.bench --smoke      # a quick test with tiny sizes
    python -m scripts.bench --keep       # keep the ratios in docs/speed.jsonl and write docs/speed.md

A benchmark ends with one JSON line ``{"benchmark", "peer", "ratios": {case: [median, low, high]},
"goals": {case: least ratio}}``.  A goal is missed if the interval of the median lies below it, and
undecided if it contains the goal.  A benchmark without an installed peer (``make bench-peers``) is
skipped with a note.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from runner.record.machine import describe_hardware
from scripts.benchmarks.harness import read_table
from scripts.pages import format_table, render
from scripts.peers.installed import ABSENT, TARGET

FOLDER = Path(__file__).parent / "benchmarks"
KEPT = FOLDER.parents[1] / "docs" / "speed.jsonl"
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


def judge(low: float, high: float, goal: float) -> str:
    """Verdict from the interval of a median ratio: a goal inside the interval is undecided."""
    return "reached" if low >= goal else "MISSED" if high < goal else "undecided"


def find_report(output: str) -> dict[str, Any] | None:
    """Last JSON line that a benchmark printed."""
    lines = [line for line in output.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else None


def to_rows(report: dict[str, Any]) -> Iterator[Row]:
    """Rows of a benchmark's report."""
    for case, (median, low, high) in report["ratios"].items():
        goal = report["goals"].get(case)
        verdict = "" if goal is None else judge(low, high, goal)
        goal_text = "" if goal is None else f"{goal:.3g}"
        spread = f"{low:.2f} to {high:.2f}"
        yield Row(
            report["benchmark"], report["peer"], case, f"{median:.2f}x", spread, goal_text, verdict
        )


def read_kept() -> dict[str, dict[str, Any]]:
    """Kept reports by benchmark, in the order of the table."""
    lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    reports = {report["benchmark"]: report for report in map(json.loads, lines)}
    return {name: reports[name] for name in read_table() if name in reports}


def write_page(reports: dict[str, dict[str, Any]]) -> str:
    """Page of kept reports."""
    rows = [row for report in reports.values() for row in to_rows(report)]
    machines = [f"`{name}`: {report['machine']}" for name, report in reports.items()]
    return render("speed", table=format_table(HEADER, rows), lines=machines)


def main() -> int:
    """Run the benchmarks; return 1 if one fails or misses a goal (goals are ignored with
    ``--smoke``)."""
    parser = argparse.ArgumentParser(prog="python -m scripts.bench")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--smoke", action="store_true", help="a quick test with tiny sizes")
    parser.add_argument("--keep", action="store_true", help="keep the ratios and write the page")
    options = parser.parse_args()
    out = Console()
    rows: list[Row] = []
    kept = read_kept()
    for name in options.names or read_table():
        command = [sys.executable, "-m", "scripts.benchmarks", name]
        command += ["--smoke"] if options.smoke else []
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=FOLDER.parents[1])
        out.print(result.stdout, markup=False, highlight=False)
        report = find_report(result.stdout)
        if result.returncode == ABSENT:
            rows.append(Row(name, verdict=f"no peer: {TARGET}"))
        elif result.returncode or report is None:
            rows.append(Row(name, verdict="failed"))
        else:
            rows += to_rows(report)
            hardware = describe_hardware("cpu")
            kept[name] = report | {"machine": f"{hardware['cpu']}, {hardware['loops']}"}
    table = Table(*HEADER)
    for row in rows:
        table.add_row(*row)
    out.print(table)
    if options.keep:
        lines = [json.dumps(report, ensure_ascii=False) for report in kept.values()]
        KEPT.write_text("\n".join([*lines, ""]), encoding="utf-8")
        KEPT.with_suffix(".md").write_text(write_page(read_kept()), encoding="utf-8")
    bad = {"failed"} if options.smoke else {"failed", "MISSED"}
    return int(any(row.verdict in bad for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
