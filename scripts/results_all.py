"""``make results-all BUDGET=8h``: run the studies with kept scores again until a budget is spent.

    python -m scripts.results_all --budget 8h                       into outputs, a run for each core
    python -m scripts.results_all --budget 2d --jobs 2 --output-dir night
    python -m scripts.results_all --budget 8h --list                the order, and the previous hours of each

Studies are sorted by their key ``importance``, ties by the hours of their kept scores, cheapest first.
Each is run by ``runner study NAME --budget`` with the remaining time, which prices and selects its
rows and skips finished runs.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from runner.errors import ConfigError
from runner.study.definition import load_study
from runner.study.pricing.budget import parse_budget
from scripts.prose.costs import read_costs
from scripts.prose.scores import FOLDER, list_scores

LEAST_SECONDS = 60.0  # with less time remaining, no further study is started
SPENT = 128  # exit codes from here on: a signal stopped the study


def rank_studies(folder: Path = FOLDER) -> dict[str, tuple[float, float]]:
    """Studies with kept scores and a YAML of that name, in the order in which they are run: minus
    their importance, and hours of their kept scores (infinite: not kept)."""
    hours = {cost.name: cost.hours for cost in read_costs(folder)}
    keys = {}
    for name in list_scores(folder):
        with suppress(ConfigError):  # scores kept under another name than their study's
            keys[name] = -load_study(name).importance, hours[name] or math.inf
    return dict(sorted(keys.items(), key=lambda item: (item[1], item[0])))


def run_all(
    names: Sequence[str], budget: float, flags: Sequence[str], start: Callable[[list[str]], int]
) -> int:
    """Number of studies that were run.

    Args:
        names: studies in order.
        budget: seconds of wall time.
        flags: options of each ``runner study``.
        start: function that runs a command and returns its exit code.
    """
    ends = time.monotonic() + budget
    for position, name in enumerate(names):
        remaining = ends - time.monotonic()
        if remaining < LEAST_SECONDS:
            return position
        if start(["study", name, "--budget", f"{remaining:.0f}s", *flags]) >= SPENT:
            return position + 1
    return len(names)


def _start(words: list[str]) -> int:
    print(f"runner {' '.join(words)}", flush=True)
    code = "from runner.commands.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *words], check=False).returncode


def main(argv: list[str]) -> int:
    """Run studies until the budget is spent; print the remaining ones."""
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
    studies = rank_studies()
    names = list(studies)
    if arguments.list:
        for name, (importance, hours) in studies.items():
            print(f"{name}\timportance {-importance:g}\t{hours:.1f} h")
        return 0
    flags = ["--jobs", str(arguments.jobs), "--output-dir", arguments.output_dir]
    n = run_all(names, budget, flags, _start)
    print(f"run: {', '.join(names[:n]) or 'none'}")
    print(f"not run: {', '.join(names[n:]) or 'none'}; the same command continues with these")
    print(
        f"to keep the scores, run: python -m scripts.results NAME --keep {arguments.output_dir}; make results"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
