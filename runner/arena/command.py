"""``runner arena``: the list of suites, and the commands run, score, tune, show, pack, publish,
verify.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable
from pathlib import Path

from runner.arena.rows import (
    find_snapshots,
    make_row,
    prepare_row,
    read_lines,
    snapshot_name,
)
from runner.arena.standing.boards import Board
from runner.arena.suite import GROUP, Suite, load_suite
from runner.arena.summary import list_suites, print_board, print_plan
from runner.arena.tune import read_tuned, tune
from runner.arena.verify import verify
from runner.catalogue import plugins
from runner.catalogue.plugins import import_plugins
from runner.disk import conf_folders
from runner.disk.inside import inside
from runner.errors import ConfigError, nearest
from runner.report.exchange.archive import pack
from runner.report.exchange.citation import add_origin
from runner.report.exchange.opened import SUFFIX
from runner.study import snapshot as snapshots
from runner.study.choice import add_only, select_runs
from runner.study.cluster.launcher import split_launcher
from runner.study.snapshot import Snapshot
from runner.study.study import run_remaining
from runner.study.study_arguments import list_named_plugins, repeat_flags
from runner.study.table_specs import PROBLEM_KEY
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.tables import print_named

AS_HELP = "name of the row (default: its component)"


def _run(argv: list[str]) -> int:
    parser = _parser("Runs your row on every problem of a suite; finished runs are skipped.")
    _add_row(parser, "your row: inference=walk 'plugins=[walk]'")
    add_only(parser)
    given = parser.parse_with_overrides(argv, "suite")
    suite, budget, output_dir = _open(given)
    launcher, given.overrides = split_launcher(given.overrides)
    jobs = given.jobs or launcher.jobs or os.cpu_count() or 1
    modules, words = split_plugins(given)
    row = make_row(words, given.name)
    row = read_tuned(suite, budget, row, output_dir)
    print_plan(suite, budget, row, given.only, jobs)
    snapshot = prepare_row(suite, budget, row, output_dir, modules, given.fresh, given.only)
    code = run_remaining(snapshot, select_runs(snapshot, given.only), jobs, launcher)
    return _print_place(given, snapshot, code)


def _print_place(given: argparse.Namespace, snapshot: Snapshot, code: int) -> int:
    """Print the place of a finished row and the command that writes its page; return the exit code
    of its runs.
    """
    if code <= 1:
        suite, budget, _ = _open(given)
        lines = read_lines(suite, budget, [snapshot])
        print_board(Board(suite, budget, lines, snapshot.study.rows))
        print_named("page", f"runner arena show {suite.name}{_repeat(given, budget)}")
    return code


def _tune(argv: list[str]) -> int:
    parser = _parser("Chooses settings of a row on the suite's validation problems.")
    _add_row(parser, "the row, with several values: inference.scale=0.1,1")
    given = parser.parse_with_overrides(argv, "suite")
    suite, budget, output_dir = _open(given)
    modules, words = split_plugins(given)
    jobs = given.jobs or os.cpu_count() or 1
    row, code = tune(suite, budget, words, given.name, modules, output_dir, jobs, given.fresh)
    if code == 0:
        chosen = f"{shlex.join([*row.overrides, '--as', row.name])}{_repeat(given, budget)}"
        print_named("run it", f"runner arena run {suite.name} {chosen}")
    return code


def _score(argv: list[str]) -> int:
    parser = _parser("Scores draws of another program as a row.")
    parser.add_argument("files", nargs="+", help="funnel.nc, problem=draws.npy, or a folder")
    parser.add_argument("--as", dest="name", required=True, help="name of the row")
    parser.add_argument(
        "--cost",
        action="append",
        default=[],
        metavar="KIND=NUMBER",
        help="stated cost of a replicate on each problem: gradients=200000",
    )
    given = parser.parse(argv)
    suite, budget, output_dir = _open(given)
    from runner.arena.given import make_given_row

    row = make_given_row(suite, given.name, given.files, given.cost)
    only = [f"{PROBLEM_KEY}={','.join(row.cells[PROBLEM_KEY])}"]
    snapshot = prepare_row(suite, budget, row, output_dir, fresh=True, only=only)
    code = run_remaining(snapshot, select_runs(snapshot, only), os.cpu_count() or 1)
    return _print_place(given, snapshot, code)


def _add_row(parser: Parser, overrides: str) -> None:
    """Arguments of a command that runs rows."""
    parser.add_overrides(overrides)
    parser.add_argument("--as", dest="name", help=AS_HELP)
    parser.add_count("--jobs", "number of parallel runs (default: one per core)")
    parser.add_argument("--fresh", action="store_true", help="measure and freeze again")
    plugins.add_option(parser, "your module, imported by every run")


def _repeat(given: argparse.Namespace, budget: str) -> str:
    """Flags of a follow-up command for the same budget and row."""
    return f"{f' --budget {budget}' if budget else ''}{repeat_flags(given)}"


def split_plugins(given: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Import the user's modules; return them and the overrides of the row with these modules."""
    modules = list_named_plugins(given)
    import_plugins(modules)
    words = [word for word in given.overrides if not word.startswith("plugins=")]
    return modules, words + ([f"plugins=[{','.join(modules)}]"] if modules else [])


def _show(argv: list[str]) -> int:
    parser = _parser("Writes the page of a suite: your rows next to all kept rows.")
    parser.add_argument("--to", type=Path, help="file to write (default: in the output folder)")
    parser.add_argument(
        "--problems", action="store_true", help="print the names of parameters and exit"
    )
    given = parser.parse(argv)
    suite, budget, output_dir = _open(given)
    if given.problems:
        from runner.arena.given import print_parameters

        print_parameters(suite)
        return 0
    from runner.arena import page
    from runner.arena.publish import choose_budget

    if given.budget is None:
        budget = choose_budget(suite, output_dir) or budget
    folder = inside(output_dir / GROUP, suite.name, "suite")
    path = given.to or folder / f"{budget or 'arena'}.html"
    board = page.read_board(suite, budget, output_dir)
    page.write(board, path)
    print_board(board)
    print_named("written", path)
    return 0


def _publish(argv: list[str]) -> int:
    parser = Parser(
        description="Writes the pages of suites as static files, for any web host.",
    )
    parser.add_argument("folder", type=Path, help="folder for index.html and a page for each suite")
    parser.add_argument("suites", nargs="*", help="names (default: all with scores)")
    add_output_dir(parser, must_exist=True)
    conf_folders.add_option(parser)
    given = parser.parse(argv)
    from runner.arena.publish import publish

    suites = [load_suite(name) for name in given.suites or conf_folders.names(GROUP)]
    print_named("written", publish(suites, given.output_dir.resolve(), given.folder))
    return 0


def _open(given: argparse.Namespace) -> tuple[Suite, str, Path]:
    """The named suite, its budget, and the folder of records."""
    suite = load_suite(given.suite)
    return suite, suite.budget(given.budget), given.output_dir.resolve()


def _parser(description: str) -> Parser:
    parser = Parser(description=description)
    parser.add_argument("suite", help="name of a file in conf/arena (runner arena lists them)")
    parser.add_argument(
        "--budget",
        help="small, medium or large (default: the suite's first; show: the longest with scores)",
    )
    add_output_dir(parser)
    conf_folders.add_option(parser)
    return parser


def _pack(argv: list[str]) -> int:
    parser = _parser("Packs a row that was run: scores, records, configs, plug-ins.")
    parser.add_overrides("overrides of the row, as in its run")
    parser.add_argument("--as", dest="name", help=AS_HELP)
    parser.add_argument("--to", type=Path, metavar="FILE", help="the file (default: ROW.zip)")
    add_origin(parser)
    given = parser.parse_with_overrides(argv, "suite")
    suite, budget, output_dir = _open(given)
    words = [word for word in given.overrides if not word.startswith("plugins=")]
    name = snapshot_name(suite, budget, make_row(words, given.name).name)
    snapshot = snapshots.load(name, output_dir)
    if snapshot is None:
        names = [s.name for s in find_snapshots(suite, budget, output_dir)]
        raise ConfigError(
            f"arena pack: {name} was not run here{nearest(name, names)}; run it with runner arena run"
        )
    row = snapshot.study.rows[0].name
    path = given.to or Path(f"{row.replace(' ', '_')}{SUFFIX}")
    counts = pack(snapshot, path, author=given.author, licence=given.licence)
    print_named("packed", f"{row} in {suite.name}: {counts['runs']} of {len(snapshot.runs)} runs")
    if snapshot.plugins:
        print_named(
            "code", f"of {', '.join(snapshot.plugins)} and the names of this machine are included"
        )
    print_named("written", path)
    print_named("check it", f"runner arena verify {path}{' --trust' if snapshot.plugins else ''}")
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "run": _run,
    "score": _score,
    "tune": _tune,
    "show": _show,
    "pack": _pack,
    "publish": _publish,
    "verify": verify,
}


def main(argv: list[str]) -> int:
    """List the suites, or run one of the commands of the arena."""
    parser = Parser(
        description="Compares your method with all others: run it on every problem of a suite, then show the page.",
        epilog="runner arena COMMAND --help lists the options of a command.",
    )
    parser.add_argument(
        "command", nargs="?", choices=sorted(COMMANDS), metavar=" | ".join(COMMANDS)
    )
    conf_folders.add_option(parser)
    if len(argv) > 1 and argv[1] in COMMANDS:
        return COMMANDS[argv[1]]([f"arena {argv[1]}", *argv[2:]])
    parser.parse(argv)
    return list_suites()
