"""``runner compare``: what differs between recorded runs, and their results side by side, from the
records on disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from components.metrics.names import better
from runner.errors import ConfigError
from runner.record.facts import skip_unreadable
from runner.report.compared_record import ComparedRecord, load
from runner.report.comparison import (
    Comparison,
    differences_table,
    evidence_table,
    results_table,
)
from runner.report.exchange.opened import find_in, find_records, is_archive
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.streams import is_terminal
from runner.terminal.tables import print_table

if TYPE_CHECKING:
    import pandas as pd


def main(argv: list[str]) -> int:
    """Compares the runs named; exit code 0, or 2 when one cannot be found or read."""
    parser = Parser(
        prog="runner compare",
        description="Shows what differs between recorded runs (configuration, data, code, versions) and their results "
        "side by side: mean ± standard error over replicates (on a terminal ↑ marks scores that are better the higher, ↓ the "
        "lower), and the difference of each from the first where replicates are paired (the same seed and data), with p of "
        "the two-sided signed-rank test of five or more pairs, "
        "corrected for their number (Holm) where several runs are compared. Of runs of one replicate under attack, p of "
        "McNemar's exact test over the test labels that one alone predicts rightly. Where two or more paired runs have the "
        "score log_evidence, the posterior probabilities of their models at equal prior odds.",
        epilog="Reads the records on disk, needs no MLflow. Not on a terminal, rows are tab-separated: "
        "section, name, one column for each run. Exit code 0, or 2 for a run that cannot be found.",
    )
    parser.add_argument(
        "run",
        nargs="+",
        help="folder of a run, or the beginning of its signature, two or more; or archives of studies: "
        "all their runs, or those of the signatures that follow",
    )
    add_output_dir(parser, must_exist=True)
    parser.add_argument(
        "--all",
        action="store_true",
        help="show every key of the configurations, not the differences",
    )
    arguments = parser.parse_args(argv[1:])
    if len(arguments.run) < 2 and not is_archive(arguments.run[0]):
        raise ConfigError(f"compare: give two runs or more, not {len(arguments.run)}")
    names, folders = find_records(arguments.run, arguments.output_dir)
    return _compare(names, folders, everything=arguments.all)


def _compare(names: list[str], folders: list[Path], everything: bool) -> int:
    """Print what differs between runs, and their results.

    Raises:
        ConfigError: fewer than two can be read.
    """
    runs = _readable(names, folders)
    records: dict[str, ComparedRecord] = {}
    for run in runs:  # the same run may be in several archives
        again = sum(label.partition(" ")[0] == run.label for label in records)
        records[f"{run.label} {again + 1}" if again else run.label] = run
    first, *others = records
    comparison = Comparison.of(records, first, everything)
    results = results_table(comparison.scores)
    differences = differences_table(comparison)
    if is_terminal(sys.stdout):
        results = results.rename(index=_add_arrow)
        differences = differences.rename(index=_add_arrow)
    empty = "none has a result yet"
    _print("run", comparison.facts)
    _print("config", comparison.settings, "no difference")
    if len(others) == 1:  # one column more
        _print("result", results.assign(difference=differences[others[0]]), empty)
    else:
        _print("result", results, empty)
        _print(f"less {first}", differences, empty)
    evidence = evidence_table(records)
    if len(evidence):
        _print("evidence", evidence)
    for line in comparison.notes:
        print(f"note: {line}", file=sys.stderr)
    return 0


def _readable(names: list[str], folders: list[Path]) -> list[ComparedRecord]:
    """The runs that this user may read, the others named in a line.

    Raises:
        ConfigError: fewer than two are left, or one is damaged or not there."""
    runs = []
    for name in names:
        with skip_unreadable(Path(name)):
            runs.append(load(find_in(name, folders)))
    if len(runs) < 2:
        raise ConfigError(
            f"compare: {len(runs)} of {len(names)} runs can be read; give two or more that can"
        )
    return runs


def _add_arrow(metric: str) -> str:
    """A score's name with its direction, for display at a terminal."""
    return metric + {"higher": " ↑", "lower": " ↓", None: ""}[better(metric)]


def _print(name: str, table: pd.DataFrame, empty: str = "") -> None:
    """Print a section: a line for each row of a table of texts."""
    rows = [list(row) for row in table.itertuples(name=None)]
    is_shown = sys.stdout.isatty()
    if is_shown and not rows:
        print(f"{name}: {empty}")
        return
    header = ("", *table.columns)
    print_table(name, header, rows if is_shown else [[name, *row] for row in rows])
