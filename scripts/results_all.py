"""``make results-all BUDGET=8h``: the studies with kept scores, run again until a budget is spent.

    python -m scripts.results_all --budget 8h                       into outputs, a run for each core
    python -m scripts.results_all --budget 2d --jobs 2 --output-dir night
    python -m scripts.results_all --budget 8h --list                the order, and what each took before

Studies come by their key ``importance``, ties by what their scores took before, the cheapest first.
Each is ``runner study NAME --budget`` with the time that is left, so that its rows are priced and
picked as there, and what is done is skipped.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.errors import ConfigError
from runner.study.definition import load_study
from runner.study.pricing.budget import parse_budget
from scripts.prose.costs import PageCost, read_costs
from scripts.prose.scores import FOLDER, list_scores

LEAST_SECONDS = 60.0  # with less left no further study is begun
SPENT = 128  # exit codes from here on: a signal stopped the study


@dataclass(frozen=True)
class Candidate:
    """A study with kept scores."""

    name: str
    importance: float
    cost: PageCost


def find_candidates(folder: Path = FOLDER) -> list[Candidate]:
    """Studies with kept scores and a YAML of that name, in the order in which they are run."""
    costs = {cost.name: cost for cost in read_costs(folder)}
    candidates = []
    for name in list_scores(folder):
        try:
            study = load_study(name)
        except ConfigError:  # scores kept under another name than their study's
            continue
        candidates.append(Candidate(name, study.importance, costs[name]))
    return sorted(candidates, key=_order)


def _order(candidate: Candidate) -> tuple[float, float, str]:
    hours = candidate.cost.hours
    return -candidate.importance, math.inf if hours is None else hours, candidate.name


def run_all(
    names: Sequence[str], budget: float, flags: Sequence[str], start: Callable[[list[str]], int]
) -> tuple[list[str], list[str]]:
    """Names of the studies that were run, and of those for which no time was left.

    Args:
        names: studies in order.
        budget: seconds by the clock.
        flags: of each ``runner study``.
        start: runs a command and returns its exit code.
    """
    ends = time.monotonic() + budget
    for position, name in enumerate(names):
        left = ends - time.monotonic()
        if left < LEAST_SECONDS:
            return list(names[:position]), list(names[position:])
        words = ["study", name, "--budget", f"{left:.0f}s", *flags]
        if start(words) >= SPENT:
            return list(names[: position + 1]), list(names[position + 1 :])
    return list(names), []


def _start(words: list[str]) -> int:
    print(f"runner {' '.join(words)}", flush=True)
    code = "from runner.commands.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *words], check=False).returncode


def main(argv: list[str]) -> int:
    """Runs studies until the budget is spent; says which are left."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.results_all", description="Studies with kept scores, run again."
    )
    parser.add_argument("--budget", required=True, metavar="TIME", help="such as 30m, 8h or 2d")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at once")
    parser.add_argument("--output-dir", default="outputs", help="where runs are recorded")
    parser.add_argument("--list", action="store_true", help="show the order and stop")
    arguments = parser.parse_args(argv)
    try:
        budget = parse_budget(arguments.budget)
    except ConfigError as error:
        parser.error(str(error))
    candidates = find_candidates()
    if arguments.list:
        for candidate in candidates:
            hours = candidate.cost.hours
            before = "not kept" if hours is None else f"{hours:.1f} h"
            print(f"{candidate.name}\timportance {candidate.importance:g}\t{before}")
        return 0
    flags = ["--jobs", str(arguments.jobs), "--output-dir", arguments.output_dir]
    ran, left = run_all([candidate.name for candidate in candidates], budget, flags, _start)
    print(f"run: {', '.join(ran) or 'none'}")
    print(f"left out: {', '.join(left) or 'none'}; the same command goes on with them")
    print(
        f"take scores in with: python -m scripts.results NAME --keep {arguments.output_dir}; make results"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
