"""``runner price <study>``: what the runs of a study that are not done will take of this machine.

Nothing is recorded: probes write to temporary folders, and a study that was never launched is not
frozen.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from runner.errors import ConfigError
from runner.study.choice import refused_among, select_runs
from runner.study.display import state
from runner.study.find_snapshot import find_snapshot
from runner.study.pricing.price_list import HEADER, list_rows, price_runs, show_search, to_cells
from runner.study.study import UNFINISHED
from runner.study.study_arguments import add_runs, parse_words
from runner.terminal.arguments import Parser
from runner.terminal.printer import out
from runner.terminal.tables import print_json, print_table


def _parse(argv: list[str]) -> argparse.Namespace:
    """Words of ``runner price``.

    Raises:
        ConfigError: one of them is wrong.
    """
    parser = Parser(
        prog="runner price",
        description="What the runs of a study that are not done will take of this machine: "
        "CPU time, time by the clock, memory and disk, from records of equal runs or from probes. "
        "Nothing is recorded.",
    )
    add_runs(parser)
    arguments, launcher = parse_words(parser, argv)
    if launcher.engine is not None:
        raise ConfigError(
            f"price: is of this machine, and hydra/launcher={launcher.engine} has others; leave it out"
        )
    return arguments


def main(argv: list[str]) -> int:
    """Shows the price of each row of a study and of all; 1: some runs have none."""
    arguments = _parse(argv)
    snapshot = find_snapshot(arguments, Path(arguments.output_dir).resolve(), reads_only=True)
    runs = select_runs(snapshot, arguments.only)
    remaining = [run for run in runs if state(snapshot, run) in UNFINISHED]
    if not remaining:
        out.print(f"study    {snapshot.name}: nothing is left to run")
        return 0
    began = time.monotonic()
    prices = price_runs(snapshot, remaining, arguments.jobs, arguments.probe_seconds)
    lines = list_rows(remaining, prices, arguments.jobs)
    if arguments.json:
        print_json(lines)
    else:
        out.print(
            f"study    {snapshot.name}: {len(remaining)} of {len(runs)} runs are left, "
            f"{arguments.jobs} at a time"
        )
        print_table("", HEADER, (to_cells(line) for line in lines))
        show_search(prices, time.monotonic() - began)
        for run in refused_among(snapshot, arguments.only):
            out.print(f"refused  {run.name}: {run.refused}")
    return int(any(price.error for price in prices.values()))
