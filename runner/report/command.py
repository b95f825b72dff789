"""``runner report <study>``: published | ours | n | difference in SE | verdict, as HTML, Markdown,
CSV and PNG."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from runner.catalogue import plugins
from runner.disk import conf_folders
from runner.disk.inside import inside
from runner.errors import ConfigError
from runner.report.exchange.expected import expect_protocols
from runner.report.exchange.opened import is_archive, open_archive
from runner.report.notes import describe_part, note_protocols
from runner.report.origin import read_kept_scores
from runner.report.report import write
from runner.report.run_views import run_views
from runner.report.scores.cells import TableLayout, list_cells
from runner.report.scores.earlier import PROTOCOL
from runner.report.selection import folder_name, restrict
from runner.study import snapshot as snapshots
from runner.study.choice import add_only
from runner.study.definition import load_study
from runner.study.snapshot import Snapshot
from runner.terminal.arguments import Parser, add_output_dir, existing_folder
from runner.terminal.printer import out
from runner.terminal.tables import print_named


def _build_parser() -> Parser:
    parser = Parser(
        description="Compares the results of a study with the published numbers, without running anything.",
    )
    parser.add_argument(
        "study",
        nargs="?",
        help="name of a study, or the name under which it was launched (--as); or an archive file",
    )
    parser.add_argument(
        "--to",
        type=Path,
        help="folder to write to (default: <output-dir>/<study>/report; for an archive <output-dir>/<study>/archived_report)",
    )
    add_output_dir(parser)
    parser.add_argument(
        "--with",
        dest="earlier",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="each a <study>_replicates.csv of an earlier report or of another machine; "
        "their scores are included",
    )
    add_only(parser)
    parser.add_argument(
        "--paper",
        action="store_true",
        help="also LaTeX tables, figures of one or two columns and references, in paper/",
    )
    plugins.add_own_options(parser, "accepted as in runner study; the report does not import it")
    return parser


def main(argv: list[str]) -> int:
    """Write the report of a study from its records or from an archive, without running anything."""
    parser = _build_parser()
    arguments = parser.parse(argv)
    if arguments.study is None and len(arguments.earlier) > 1:  # --with FILE STUDY
        arguments.study = arguments.earlier.pop()
    if arguments.study is None:
        parser.error("the following arguments are required: study")
    output_dir = arguments.output_dir.resolve()
    if not is_archive(arguments.study):
        if not arguments.earlier and arguments.output_dir != parser.get_default("output_dir"):
            existing_folder(arguments.output_dir)
        name = arguments.study
        name = Path(name).stem if name.endswith(".yaml") else name
        folder = inside(output_dir, name, "study") / "report"
        return _report(arguments, name, snapshots.load(name, output_dir), folder)
    with open_archive(arguments.study) as archive:
        if arguments.config_dir is None and archive.conf is not None:
            conf_folders.use(str(archive.conf))
        folder = inside(output_dir, archive.study, "study") / "archived_report"
        snapshot = snapshots.load(archive.study, archive.folder)
        if snapshot is None:
            raise ConfigError(f"{arguments.study}: has no snapshot of {archive.study}")
        return _report(arguments, archive.study, snapshot, folder)


def _report(arguments: Namespace, name: str, snapshot: Snapshot | None, folder: Path) -> int:
    """Write a report and print a summary."""
    if arguments.only:
        if snapshot is None:
            where = arguments.output_dir.resolve()
            raise ConfigError(
                f"--only: study {name} was never launched under {where}, so it has no runs"
            )
        snapshot = restrict(snapshot, arguments.only)
        folder /= folder_name(arguments.only)
    study = snapshot.study if snapshot else load_study(arguments.study)
    kept = read_kept_scores({file: Path(file) for file in arguments.earlier}, study)
    if snapshot is None:
        places = [place for place, each in kept.by_place.items() if each[0].protocol]
        kept = replace(kept, expected=expect_protocols(study, places))
    if unknown := sum(not protocol for protocol in kept.scores[PROTOCOL]):
        print_named("note", f"the protocol of {unknown} scores of --with is unknown")
    folder = arguments.to or folder
    paths, tables = write(name, study, snapshot, folder, kept, arguments.paper, only=arguments.only)
    runs = run_views(snapshot)
    partial = describe_part(arguments.only, runs, with_earlier=not kept.scores.empty)
    _print_summary(name, tables, partial)
    for path in paths:
        print_named("written", path)
    return 0


def _print_summary(name: str, tables: list[TableLayout], partial: list[str]) -> None:
    """Print verdicts, missing parts, and scores of another protocol."""
    verdicts = (cell.verdict.word for cell in list_cells(tables))
    out.print(f"study {name}: " + ", ".join(f"{n} {word}" for word, n in Counter(verdicts).items()))
    for line in partial:
        print_named("partial", line)
    for line in note_protocols(tables):
        print_named("note", line)
    if any(laid.smoke for laid in tables):
        out.print("smoke    tiny data, few steps: no number here is a result", style="red")
    if find_spec("plotly") is None:
        print_named("figures", "static; pip install 'bayes-runner[report]' makes them interactive")
