"""Costs of the pages of docs/results, from the provenance kept with their scores: ``cost.md``.

    hours = Σ over reports of the hours of their runs;  scores kept from earlier have a separate line

Reports write ``36 done; 0.5 h of computing``, and the CPU hours of runs that recorded them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runner.report.context import EARLIER_SCORES_PREFIX
from runner.report.origin import origin_path, read_origin
from scripts.pages import render
from scripts.prose.scores import list_scores

NAME = "cost.md"
DONE = re.compile(r"(\d+) done")
HOURS = re.compile(r"([\d.]+) h of computing")
CPU_HOURS = re.compile(r"([\d.]+) CPU hours")
UNKNOWN = "–"


@dataclass(frozen=True)
class PageCost:
    """Cost of the runs of a page; None if not kept."""

    name: str
    runs: int
    hours: float | None  # wall-clock time, summed over runs
    cpu_hours: float | None  # of all runs
    machine: str


def _find(pattern: re.Pattern[str], texts: Iterable[str]) -> list[float]:
    return [float(match[1]) for text in texts if (match := pattern.search(text))]


def page_cost(name: str, provenance: Iterable[tuple[str, str]]) -> PageCost:
    """Cost of a page from the provenance of its scores, including scores of earlier reports."""
    facts = [(key.removeprefix(EARLIER_SCORES_PREFIX), value) for key, value in provenance]
    runs = [value for key, value in facts if key == "runs"]
    hours = _find(HOURS, runs)
    cpu_hours = _find(CPU_HOURS, runs)
    machines = dict.fromkeys(value for key, value in facts if key == "machine")
    return PageCost(
        name,
        round(sum(_find(DONE, runs))),
        sum(hours) if hours else None,
        sum(cpu_hours) if cpu_hours and len(cpu_hours) == len(runs) else None,
        ", ".join(machines) or UNKNOWN,
    )


def read_costs(folder: Path) -> list[PageCost]:
    """Costs of all studies with kept scores, by name."""
    costs = []
    for name, scores in list_scores(folder).items():
        path = origin_path(scores)
        costs.append(page_cost(name, read_origin(path).provenance if path.is_file() else []))
    return costs


def make_costs(folder: Path) -> str:
    """``cost.md``: the cost of each page, most expensive first, and the total."""
    costs = sorted(read_costs(folder), key=lambda cost: -(cost.hours or 0.0))
    return render("cost", costs=costs, pages={page.stem for page in folder.glob("*.md")})
