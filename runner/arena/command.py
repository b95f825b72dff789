"""``runner arena``: the suites; ``arena run``: a row of the user's on every problem of one;
``arena show``: the page with it next to all others."""

from __future__ import annotations

import argparse
import math
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.arena.lengths import find_length
from runner.arena.scores import Line, read_kept, read_snapshot
from runner.arena.standings import Standing, rank_rows
from runner.arena.suite import COST, GROUP, Suite, kept_scores_file, load_suite
from runner.catalogue import plugins
from runner.catalogue.plugins import import_plugins
from runner.disk import conf_folders
from runner.disk.inside import inside
from runner.errors import ConfigError
from runner.study import snapshot as snapshots
from runner.study.choice import ONLY_HELP, select_runs
from runner.study.definition import PROBLEM_KEY, Row, plan
from runner.study.launcher import split_launcher
from runner.study.snapshot import Snapshot
from runner.study.study import (
    list_named_plugins,
    repeat_flags,
    run_remaining,
    watch_composing,
)
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.printer import number, out, show_count
from runner.terminal.tables import print_table

CPU_SECONDS = "cpu_seconds"  # the cost that hours are made of
START_SECONDS = 8.0  # CPU seconds of a run without those of its steps: imports, figures
ROLES = ("inference", "model", "attacker", "dataset", "gradient")  # a row is named by the first


# ---- rows of the user
def make_row(overrides: list[str], label: str | None) -> Row:
    """A row with these overrides."""
    name = label or name_row(overrides)
    if "/" in name or not name.strip():
        raise ConfigError(f"--as {name!r}: no name of a row; give a plain one, such as mine")
    return Row(label=name, model=name, preset="", overrides=overrides)


def name_row(overrides: list[str]) -> str:
    """Name of a row: its component, or all of its overrides."""
    values = dict(word.lstrip("+").split("=", 1) for word in overrides if "=" in word)
    chosen = next((values[role] for role in ROLES if role in values), "")
    return chosen or " ".join(overrides) or "mine"


def snapshot_name(suite: Suite, budget: str, row: str) -> str:
    """Name under which a row's runs are frozen."""
    return ".".join(filter(None, [suite.experiment, budget, row.replace(" ", "_")]))


def freeze(suite: Suite, budget: str, row: Row, output_dir: Path, modules: list[str]) -> Snapshot:
    """Composes a row on every problem, each as long as the budget allows, and saves the snapshot.

    Raises:
        ConfigError: the row has a mistake, or no problem can be composed with it.
    """
    limits = suite.budgets.get(budget, {})
    planned = list(plan(suite.to_study([row]), []))
    lengths: dict[str, list[str]] = {}
    for i, one in enumerate(planned, 1):
        show_count("measuring", i, len(planned))
        lengths[one.cell[PROBLEM_KEY]] = find_length(suite, limits, one.overrides)
    cells = {p: [*lengths[p], *row.cells.get(PROBLEM_KEY, {}).get(p, [])] for p in lengths}
    measured = row.model_copy(update={"cells": row.cells | {PROBLEM_KEY: cells}})
    name = snapshot_name(suite, budget, row.name)
    study = suite.to_study([measured])
    snapshot = snapshots.take(study, name, [], output_dir, modules, watch_composing)
    for run in snapshot.runs:
        if run.refused and not run.unfit:
            raise ConfigError(f"{run.name}: {run.refused}")
    snapshots.save(snapshot)
    return snapshot


def prepare_row(
    suite: Suite,
    budget: str,
    row: Row,
    output_dir: Path,
    modules: Sequence[str] = (),
    fresh: bool = False,
) -> Snapshot:
    """The snapshot of a row, frozen now if there is no earlier one.

    Raises:
        ConfigError: there is one of other overrides, or the row cannot be frozen.
    """
    name = snapshot_name(suite, budget, row.name)
    inside(output_dir / "studies", name, "--as")
    snapshot = None if fresh else snapshots.load(name, output_dir)
    if snapshot is None:
        snapshot = freeze(suite, budget, row, output_dir, list(modules))
        out.print(f"frozen   {snapshots.location(name, output_dir)}: {len(snapshot.runs)} runs")
    elif snapshot.study.rows[0].overrides != row.overrides:
        before = " ".join(snapshot.study.rows[0].overrides)
        raise ConfigError(
            f"arena {suite.name}: row {row.name} was frozen with {before}; give another name "
            "(--as …), or --fresh"
        )
    return snapshot


def find_snapshots(suite: Suite, budget: str, output_dir: Path) -> list[Snapshot]:
    """Frozen rows of a budget, in the order in which they were frozen."""
    pattern = snapshot_name(suite, budget, "*")
    paths = sorted((output_dir / "studies").glob(f"{pattern}/snapshot.yaml"))
    loaded = [snapshots.load(path.parent.name, output_dir) for path in paths]
    return sorted((s for s in loaded if s is not None), key=lambda s: s.taken)


def read_lines(suite: Suite, budget: str, frozen: list[Snapshot]) -> list[Line]:
    """Lines of the user's rows, and the kept lines of the budget; a row of the user's takes
    precedence over a kept one of its name."""
    own = [line for snapshot in frozen for line in read_snapshot(suite, budget, snapshot)]
    path = kept_scores_file(suite.name)
    names = {line.row for line in own}
    kept = read_kept(path) if path else []
    return [*own, *(k for k in kept if k.budget == budget and k.row not in names)]


# ---- commands
def _run(argv: list[str]) -> int:
    parser = _parser("run", "Runs your row on every problem of a suite; done runs are skipped.")
    parser.add_argument("overrides", nargs="*", help="your row: inference=walk 'plugins=[walk]'")
    parser.add_argument("--as", dest="name", help="name of the row (default: its component)")
    parser.add_argument("--jobs", type=int, help="runs at once (default: one per core)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="KEY=VALUE,…", help=ONLY_HELP
    )
    parser.add_argument("--fresh", action="store_true", help="measure and freeze the row anew")
    plugins.add_option(parser, "a module of yours that every run imports")
    given = parser.parse_intermixed_args(argv)
    conf_folders.use(given.config_dir)
    suite, budget = _suite(given)
    launcher, given.overrides = split_launcher(given.overrides)
    given.jobs = given.jobs or launcher.jobs or os.cpu_count() or 1
    modules = list_named_plugins(given)
    import_plugins(modules)
    words = [word for word in given.overrides if not word.startswith("plugins=")]
    words += [f"plugins=[{','.join(modules)}]"] if modules else []
    row = make_row(words, given.name)
    output_dir = Path(given.output_dir).resolve()
    snapshot = prepare_row(suite, budget, row, output_dir, modules, given.fresh)
    code = run_remaining(snapshot, select_runs(snapshot, given.only), given.jobs, launcher)
    if code <= 1:
        _print_places(suite, budget, row, read_lines(suite, budget, [snapshot]))
        chosen = f" --budget {budget}" if budget else ""
        out.print(f"page     runner arena show {suite.name}{chosen}{repeat_flags(given)}")
    return code


def _print_places(suite: Suite, budget: str, row: Row, lines: list[Line]) -> None:
    """The row's place on each score."""
    rows = []
    for table in suite.tables:
        standings = rank_rows(lines, str(table.metric), suite.direction(table), row.name)
        place = next((i for i, s in enumerate(standings, 1) if s.row == row.name), 0)
        if not place or not standings[place - 1].ranks:
            rows.append([str(table.metric), "–", "", "", ""])
            continue
        mine = standings[place - 1]
        rows.append(
            [
                str(table.metric),
                f"{place} of {sum(bool(s.ranks) for s in standings)}",
                f"{mine.mean_rank:.1f}",
                number(mine.typical),
                standings[0].row,
            ]
        )
    title = f"{row.name} in {suite.name}{f', budget {budget}' if budget else ''}"
    print_table(title, ("score", "place", "mean rank", "median", "leader"), rows)
    states = _describe_states(lines, row.name)
    if states:
        out.print(f"problems {states}")


def _describe_states(lines: list[Line], row: str) -> str:
    """Problems on which a row is not done, by state."""
    problems: dict[str, dict[str, None]] = {}
    for line in lines:
        if line.row == row and line.state != "done":
            problems.setdefault(line.state, {})[line.problem] = None
    words = {"doubted": "checks failed (†)"}
    return "; ".join(f"{words.get(s, s)}: {', '.join(names)}" for s, names in problems.items())


def _show(argv: list[str]) -> int:
    parser = _parser("show", "Writes the page of a suite: your rows next to all kept rows.")
    parser.add_argument("--to", type=Path, help="file to write (default: in the output folder)")
    given = parser.parse_args(argv)
    conf_folders.use(given.config_dir)
    suite, budget = _suite(given)
    output_dir = Path(given.output_dir).resolve()
    frozen = find_snapshots(suite, budget, output_dir)
    lines = read_lines(suite, budget, frozen)
    from runner.arena.page import write

    name = f"{budget}.html" if budget else "arena.html"
    path = given.to or inside(output_dir / GROUP, suite.name, "suite") / name
    write(suite, budget, lines, [snapshot.study.rows[0] for snapshot in frozen], path)
    out.print(f"written  {path}")
    return 0


def _list() -> int:
    """Every suite: what it measures, its leader, and how long a row takes here."""
    rows = []
    for name in conf_folders.names(GROUP):
        suite = load_suite(name)
        path = kept_scores_file(name)
        kept = read_kept(path) if path else []
        budgets = [b for b in suite.budgets or {"": {}} if any(k.budget == b for k in kept)]
        leader = _leader(suite, [k for k in kept if k.budget == budgets[-1]]) if budgets else None
        times = {b: time_of_row(suite, [k for k in kept if k.budget == b]) for b in budgets}
        hours = ", ".join(f"{b} {text}".strip() for b, text in times.items() if text)
        problems = f"{len(suite.problems)} problems, {len(suite.rows)} rows"
        rows.append([name, suite.measures, problems, leader.row if leader else "–", hours or "–"])
    print_table("arena", ("suite", "measures", "size", "leads", "time of a row"), rows)
    return 0


def _leader(suite: Suite, lines: list[Line]) -> Standing | None:
    table = suite.tables[0]
    standings = rank_rows(lines, str(table.metric), suite.direction(table))
    return standings[0] if standings else None


def time_of_row(suite: Suite, lines: list[Line]) -> str:
    """Time that a row takes on all cores, by the CPU seconds of the kept ones; empty: not
    counted."""
    seconds: dict[str, float] = {}
    for line in lines:
        if line.is_final:
            spent = line.values.get(COST + CPU_SECONDS, 0.0)
            seconds[line.row] = seconds.get(line.row, 0.0) + spent
    typical = statistics.median(seconds.values()) if seconds else 0.0
    if not typical:
        return ""
    minutes = (typical + START_SECONDS * len(suite.problems)) / 60 / (os.cpu_count() or 1)
    return f"{minutes / 60:.1f} h" if minutes > 90 else f"{math.ceil(minutes)} min"


def _suite(given: argparse.Namespace) -> tuple[Suite, str]:
    suite = load_suite(given.suite)
    return suite, suite.budget(given.budget)


def _parser(command: str, description: str) -> Parser:
    parser = Parser(prog=f"runner arena {command}", description=description)
    parser.add_argument("suite", help="name of a file in conf/arena (runner arena lists them)")
    parser.add_argument("--budget", help="small, medium or large (default: the suite's first)")
    add_output_dir(parser)
    conf_folders.add_option(parser)
    return parser


COMMANDS: dict[str, Any] = {"run": _run, "show": _show}


def main(argv: list[str]) -> int:
    """Lists the suites, or runs one of the commands of the arena."""
    parser = Parser(
        prog="runner arena",
        description="Your method next to all others: run it on every problem of a suite, show the page.",
        epilog="runner arena run --help and runner arena show --help tell their options.",
    )
    parser.add_argument("command", nargs="?", choices=sorted(COMMANDS), metavar="run | show")
    conf_folders.add_option(parser)
    if len(argv) > 1 and argv[1] in COMMANDS:
        code: int = COMMANDS[argv[1]](argv[2:])
        return code
    given = parser.parse_args(argv[1:])
    conf_folders.use(given.config_dir)
    return _list()
