"""``runner price <study>``: predict the cost of a study's unfinished runs on this machine.

Nothing is recorded: probes write to temporary folders, and a new study is not frozen.
"""

from __future__ import annotations

import time

from components.memory import free_memory
from components.models.shallow_gp.exact_cost import describe_free_memory
from runner.errors import ConfigError
from runner.study.choice import refused_among, select_runs
from runner.study.display import state
from runner.study.find_snapshot import find_snapshot
from runner.study.pricing.price_list import HEADER, list_rows, price_runs, show_search, to_cells
from runner.study.study import UNFINISHED
from runner.study.study_arguments import add_runs, parse_words
from runner.terminal.arguments import Parser
from runner.terminal.printer import out
from runner.terminal.tables import print_json, print_named, print_table


def main(argv: list[str]) -> int:
    """Print the price of each row of a study and the total; return 1 if a run has no price.

    Raises:
        ConfigError: an argument is invalid.
    """
    parser = Parser(
        description="Predict the cost of a study's unfinished runs on this machine: "
        "CPU time, wall-clock time, memory and disk, from records of equal runs or from probes. "
        "Nothing is recorded.",
    )
    add_runs(parser)
    arguments, launcher = parse_words(parser, argv)
    if launcher.engine is not None:
        raise ConfigError(
            f"price: supports only this machine; remove hydra/launcher={launcher.engine}"
        )
    snapshot = find_snapshot(arguments, arguments.output_dir.resolve(), reads_only=True)
    runs = select_runs(snapshot, arguments.only)
    remaining = [run for run in runs if state(snapshot, run) in UNFINISHED]
    if not remaining:
        print_named("study", f"{snapshot.name}: all runs are done")
        return 0
    began = time.monotonic()
    prices = price_runs(snapshot, remaining, arguments.jobs, arguments.probe_seconds)
    lines = list_rows(remaining, prices, arguments.jobs)
    if arguments.json:
        print_json(lines)
    else:
        out.print(
            f"study    {snapshot.name}: {len(remaining)} of {len(runs)} runs remain, "
            f"{arguments.jobs} in parallel"
        )
        print_table("", HEADER, (to_cells(line) for line in lines))
        show_search(prices, time.monotonic() - began)
        out.print(f"memory   {describe_free_memory(free_memory())}")
        for run in refused_among(snapshot, arguments.only):
            print_named("refused", f"{run.name}: {run.refused}")
    return int(any(price.error for price in prices.values()))
