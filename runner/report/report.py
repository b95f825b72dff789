"""``runner report <study>``: published | ours | n | difference in SE | verdict, as HTML, Markdown,
CSV and PNG."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.catalogue import plugins
from runner.disk import conf_folders
from runner.disk.atomic import write_bytes, write_text
from runner.disk.inside import inside
from runner.errors import ConfigError
from runner.report.context import (
    describe_part,
    has_earlier_scores,
    note_protocols,
    notes,
    provenance,
    run_views,
    table_views,
)
from runner.report.csv_files import write_numbers, write_replicates
from runner.report.details import details
from runner.report.differs import beside, differs
from runner.report.exchange.expected import expect_protocols
from runner.report.exchange.opened import is_archive, open_archive
from runner.report.exchange.score_files import open_score_files
from runner.report.figures.costs import costs
from runner.report.figures.curves import curves
from runner.report.figures.evolutions import evolutions
from runner.report.figures.picture import Picture, mark_smoke, marked_chart
from runner.report.figures.ranks import ranks
from runner.report.figures.spreads import spreads
from runner.report.origin import (
    Kept,
    Origin,
    collect_cell_facts,
    collect_protocols,
    read_kept_scores,
    write_origin,
)
from runner.report.results import TableLayout, layout_table, restrict_to_kept_rows
from runner.report.selection import folder_name, restrict
from runner.report.wording import CORRECTION, describe_bold, describe_test
from runner.study import snapshot as snapshots
from runner.study.choice import ONLY_HELP
from runner.study.definition import StudyDefinition, load_study
from runner.study.snapshot import Snapshot
from runner.terminal.arguments import Parser, add_output_dir, existing_folder
from runner.terminal.plain import plain_value
from runner.terminal.printer import out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCRIPT = Path(__file__).parent / "page.js"


def as_json(value: Any) -> str:
    """JSON that is safe inside a script element, with any words in it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )


def _plotly() -> str:
    """plotly.js as packed text; a page unpacks it (4.8 MB are 1.9)."""
    spec = find_spec("plotly")  # its Python would take a third of a second to import
    if spec is None or spec.origin is None:
        return ""
    library = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    return base64.b64encode(gzip.compress(library.read_bytes(), 9, mtime=0)).decode()


def embed_figures(figures: list[dict[str, Any]], details: dict[str, Any]) -> dict[str, Any]:
    """For the template; where no figure has an interactive form the page goes without the
    library."""
    charts = [figure["chart"] for figure in figures]
    return {
        "plotly": _plotly() if any(charts) else "",
        "charts": as_json(charts),
        "details": as_json(details),
        "script": SCRIPT.read_text(encoding="utf-8"),
    }


TEMPLATES = Path(__file__).parent  # template.html.j2, template.md.j2


def _png(figure: Figure) -> bytes:
    from components.figures.labels import readable

    buffer = io.BytesIO()
    readable(figure).savefig(buffer, format="png", dpi=150, bbox_inches="tight")
    return buffer.getvalue()


def markdown(text: object) -> str:
    """Text of a study or a record in Markdown, with special Markdown and HTML signs escaped."""
    special = r"([\\`*\[\]<>|~]|(?<!\w)_|_(?!\w))"  # an underscore inside a word means nothing
    return re.sub(special, r"\\\1", " ".join(str(text).split()))


def _figures(
    study: StudyDefinition,
    snapshot: Snapshot | None,
    tables: list[TableLayout],
    kept: Kept,
    folder: Path,
    smoke: bool,
) -> tuple[dict[str, Picture], list[dict[str, Any]]]:
    """Drawn figures, and every figure as the pages show it, with its PNG written.

    Figures drawn from records that are not here stay as they are next to the kept scores.
    """
    new_pictures = (
        curves(study, tables)
        | evolutions(study, snapshot)
        | spreads(study, snapshot, tables)
        | ranks(study, tables)
        | costs(study, snapshot)
    )
    pictures = kept.pictures()
    if smoke:
        new_pictures = {
            f"{stem}_smoke": Picture(
                mark_smoke(made.figure), made.caption, marked_chart(made.chart)
            )
            for stem, made in new_pictures.items()
        }
    views = []
    for stem in dict.fromkeys([*pictures, *new_pictures]):
        picture = new_pictures.get(stem)
        content = _png(picture.figure) if picture else pictures[stem][1].read_bytes()
        write_bytes(folder / f"{stem}.png", content)
        views.append(
            {
                "file": f"{stem}.png",
                "caption": picture.caption if picture else pictures[stem][0],
                "made": picture is not None,
                "base64": base64.b64encode(content).decode(),
                "chart": picture.chart if picture else {},
            }
        )
    return new_pictures, views


def _write_table_figure(laid: TableLayout, folder: Path, smoke: bool) -> Path:
    from runner.report.figures.table_figure import table_figure

    figure = table_figure(laid)
    path = folder / f"table_{laid.spec.name}{'_smoke' if smoke else ''}.png"
    write_bytes(path, _png(mark_smoke(figure) if smoke else figure))
    return path


def write_page(path: Path, context: dict[str, Any], template: Path | None = None) -> Path:
    """Write a page from the template for files of its suffix, or from one that extends it."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([TEMPLATES, *([template.parent] if template else [])]),
        autoescape=lambda file: str(file).endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=plain_value,
    )
    environment.filters["md"] = markdown
    name = template.name if template else f"template{path.suffix}.j2"
    write_text(path, environment.get_template(name).render(context))
    return path


def write(
    name: str,
    study: StudyDefinition,
    snapshot: Snapshot | None,
    folder: Path,
    kept: Kept | None = None,
    paper: bool = False,
    forms: Collection[str] = ("html", "md", "tables"),
    only: Sequence[str] = (),
) -> tuple[list[Path], list[TableLayout]]:
    """Writes the report into a folder: what was written, the page first, and the tables it shows;
    ``paper``: and, into ``paper/`` there, what a paper takes from it; ``forms``: which pages, and
    tables as pictures; ``only``: the selection that ``study`` and ``snapshot`` are restricted to.
    Where anything in it is a smoke run, title, files and figures say so."""
    kept = kept or Kept()
    tables = layout_table(study, snapshot, kept.scores, kept.expected, kept.origin.protocols)
    runs = run_views(snapshot) if snapshot else []
    smoke = any(run["facts"].get("smoke") for run in runs)
    stem = f"{name}_smoke" if smoke else name
    folder.mkdir(parents=True, exist_ok=True)
    new_pictures, figures = _figures(study, snapshot, tables, kept, folder, smoke)
    paths = [folder / figure["file"] for figure in figures]
    if "tables" in forms:
        paths += [_write_table_figure(laid, folder, smoke) for laid in tables]
    row_changes = kept.origin.differs | differs(snapshot)
    page_tables = tables
    if snapshot is None and kept.origin.rows:
        page_tables = restrict_to_kept_rows(tables, kept.origin.rows)
    page_rows = {row.name: row for laid in page_tables for row, _ in laid.rows}.values()
    part = describe_part(only, runs, with_earlier=bool(kept.scores))
    earlier = kept.origin if has_earlier_scores(snapshot, tables) else Origin()
    messages = [*part, *notes(snapshot, tables, runs, earlier)]
    came_from = provenance(study, snapshot, runs, earlier.provenance)
    context = {
        "name": name,
        "smoke": smoke,
        "description": study.description,
        "notes": messages,
        "tables": table_views(page_tables),
        "draws_anew": study.draws_anew or "",
        "bold": describe_bold(study.splits is not None),
        "test": describe_test(study.splits is not None),
        "correction": CORRECTION,
        "reference": study.reference,
        "beside": beside(study),
        "changes": {
            row.name: row_changes[row.name] for row in page_rows if row.name in row_changes
        },
        "figures": figures,
        "provenance": came_from,
        "runs": runs,
    }
    if "html" in forms:
        interactive = embed_figures(figures, details(page_tables, snapshot, folder))
        paths.append(write_page(folder / f"{stem}.html", context | interactive))
    if "md" in forms:
        paths.append(write_page(folder / f"{stem}.md", context))
    write_numbers(tables, folder / f"{stem}.csv")
    write_replicates(tables, folder / f"{stem}_replicates.csv")
    origin = Origin(
        came_from,
        messages,
        row_changes,
        collect_cell_facts(tables),
        {f["file"][:-4]: f["caption"] for f in figures},
        protocols=collect_protocols(tables, kept.origin),
    )
    write_origin(origin, folder / f"{stem}_origin.json")
    paths.reverse()
    paths += [
        folder / f"{stem}.csv",
        folder / f"{stem}_replicates.csv",
        folder / f"{stem}_origin.json",
    ]
    if paper:
        from runner.report.paper import write_paper

        paths += write_paper(
            stem, folder / "paper", tables, new_pictures, snapshot, smoke, study.reference
        )
    return paths, tables


def _build_parser() -> Parser:
    parser = Parser(
        prog="runner report",
        description="Lays the results of a study beside the published numbers; runs nothing.",
    )
    parser.add_argument(
        "study",
        nargs="?",
        help="name of a study, or that under which it was launched (--as); or an archive of one, a path or URL",
    )
    parser.add_argument(
        "--to",
        type=Path,
        help="folder to write to (default: <output-dir>/<study>/report; of an archive <output-dir>/<study>/archived_report)",
    )
    add_output_dir(parser)
    parser.add_argument(
        "--with",
        dest="earlier",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE",
        help="each a <study>_replicates.csv of an earlier report or of another machine, or the same as Parquet: "
        "a path or a URL; their scores count as well",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="KEY=VALUE,…", help=ONLY_HELP
    )
    parser.add_argument(
        "--paper",
        action="store_true",
        help="also LaTeX tables, figures as wide as a column and references, in paper/",
    )
    conf_folders.add_option(parser)
    plugins.add_option(parser, "as for runner study; a report imports none")
    return parser


def main(argv: list[str]) -> int:
    """Writes the report of a study from its records, or from an archive; runs nothing."""
    parser = _build_parser()
    arguments = parser.parse_args(argv[1:])
    if arguments.study is None and len(arguments.earlier) > 1:  # --with FILE STUDY
        arguments.study = arguments.earlier.pop()
    if arguments.study is None:
        parser.error("the following arguments are required: study")
    conf_folders.use(arguments.config_dir)
    output_dir = Path(arguments.output_dir).resolve()
    if not is_archive(arguments.study):
        if not arguments.earlier and arguments.output_dir != parser.get_default("output_dir"):
            existing_folder(arguments.output_dir)
        study = arguments.study
        name = Path(study).stem if study.endswith(".yaml") else study
        folder = inside(output_dir, name, "study") / "report"
        snapshot = snapshots.load(name, output_dir)
        return _report(arguments, name, snapshot, arguments.to or folder)
    with open_archive(arguments.study) as archive:
        if arguments.config_dir is None and archive.conf is not None:
            conf_folders.use(str(archive.conf))
        folder = inside(output_dir, archive.study, "study") / "archived_report"
        snapshot = snapshots.load(archive.study, archive.folder)
        if snapshot is None:
            raise ConfigError(f"{arguments.study}: has no snapshot of {archive.study}")
        return _report(arguments, archive.study, snapshot, arguments.to or folder)


def _report(arguments: Namespace, name: str, snapshot: Snapshot | None, folder: Path) -> int:
    """Write a report and say what is in it."""
    if arguments.only:
        if snapshot is None:
            where = Path(arguments.output_dir).resolve()
            raise ConfigError(
                f"--only: study {name} was never launched under {where}, so it has no runs"
            )
        snapshot = restrict(snapshot, arguments.only)
        folder = arguments.to or folder / folder_name(arguments.only)
    study = snapshot.study if snapshot else load_study(arguments.study)
    with open_score_files(arguments.earlier) as files:
        kept = read_kept_scores(files, study)
        if snapshot is None:
            kept = replace(kept, expected=expect_protocols(study, kept.places_of_known_protocol))
        if unknown := kept.of_unknown_protocol:
            out.print(f"note     protocol unknown: {unknown} of the scores of --with have none")
        paths, tables = write(
            name, study, snapshot, folder, kept, arguments.paper, only=arguments.only
        )
    runs = run_views(snapshot) if snapshot else []
    partial = describe_part(arguments.only, runs, with_earlier=bool(kept.scores))
    _print_summary(name, tables, partial)
    for path in paths:
        out.print(f"written  {path}")
    return 0


def _print_summary(name: str, tables: list[TableLayout], partial: list[str]) -> None:
    """Verdicts, what is missing, and scores of another protocol."""
    verdicts = (cell.verdict.word for laid in tables for _, cells in laid.rows for cell in cells)
    out.print(f"study {name}: " + ", ".join(f"{n} {word}" for word, n in Counter(verdicts).items()))
    for line in partial:
        out.print(f"partial  {line}")
    for line in note_protocols(tables):
        out.print(f"note     {line}")
    if any(laid.smoke for laid in tables):
        out.print("smoke    tiny data, few steps: no number here is a result", style="red")
    if find_spec("plotly") is None:
        out.print(
            "figures  are still pictures; pip install 'bayes-runner[report]' makes them interactive"
        )
