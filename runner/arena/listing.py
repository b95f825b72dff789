"""The list of suites: what each measures, who leads, and how long a row takes here."""

from __future__ import annotations

import math
import os
import statistics

from components.metrics.names import COST_PREFIX
from runner.arena.scores import Line, read_kept_lines
from runner.arena.standing.boards import find_leader
from runner.arena.suite import GROUP, Suite, load_suite
from runner.disk import conf_folders
from runner.terminal.tables import print_table

CPU_SECONDS = "cpu_seconds"  # the cost that hours are made of
START_SECONDS = 8.0  # CPU seconds of a run without those of its steps: imports, figures


def list_suites() -> int:
    """Every suite: what it measures, its leader, and how long a row takes here."""
    rows = [_describe_suite(load_suite(name)) for name in conf_folders.names(GROUP)]
    print_table("arena", ("suite", "measures", "size", "leads", "time of a row"), rows)
    return 0


def _describe_suite(suite: Suite) -> list[str]:
    """A suite's line of the list; the last budget with kept scores decides who leads."""
    kept: dict[str, list[Line]] = {budget: [] for budget in suite.budgets or {"": {}}}
    for line in read_kept_lines(suite):
        kept.setdefault(line.budget, []).append(line)
    times = {budget: time_of_row(suite, lines) for budget, lines in kept.items() if lines}
    told = ", ".join(f"{budget} {text}".strip() for budget, text in times.items() if text)
    leader = find_leader(suite, kept[[*times][-1]]) if times else None
    size = f"{len(suite.problems)} problems, {len(suite.rows)} rows"
    return [suite.name, suite.measures, size, leader or "–", told or "–"]


def time_of_row(suite: Suite, lines: list[Line]) -> str:
    """Time that a row takes on all cores, by the CPU seconds of the kept ones; empty: not
    counted."""
    seconds: dict[str, float] = {}
    for line in lines:
        if line.is_final:
            spent = line.values.get(COST_PREFIX + CPU_SECONDS, 0.0)
            seconds[line.row] = seconds.get(line.row, 0.0) + spent
    typical = statistics.median(seconds.values()) if seconds else 0.0
    if not typical:
        return ""
    minutes = (typical + START_SECONDS * len(suite.problems)) / 60 / (os.cpu_count() or 1)
    return f"{minutes / 60:.1f} h" if minutes > 90 else f"{math.ceil(minutes)} min"
