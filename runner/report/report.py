"""``runner report <study>``: published | ours | n | difference in SE | verdict, as HTML, Markdown, CSV and PNG."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner import conf_folders, plugins
from runner.arguments import Parser
from runner.console import out
from runner.csv_cells import as_word
from runner.mistakes import ConfigError
from runner.record.atomic import write_bytes, write_text
from runner.record.inside import inside
from runner.report.context import notes, provenance, run_views, table_view
from runner.report.earlier_scores import HEADER, EarlierScores, read_earlier
from runner.report.evolutions import evolutions
from runner.report.results import Laid, lay
from runner.report.spreads import spreads
from runner.study import snapshot as snapshots
from runner.study.definition import StudyDefinition, load_study
from runner.study.snapshot import Snapshot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATES = Path(__file__).parent  # template.html.j2, template.md.j2


def _curves(study: StudyDefinition, tables: list[Laid]) -> dict[str, tuple[Any, str]]:
    """Learning curves of what has been run: {file stem: (figure, caption)}."""
    import pandas as pd

    from components.figures.supervised.learning_curve import in_words, learning_curve

    drawn = {}
    for spec in study.figures:
        rows: list[dict[str, Any]] = []
        shown = study.drawn(spec)
        alike = len({row.preset for row in shown}) == 1  # settings are named where they differ
        names = {row.name: row.label if alike else row.name for row in shown}
        for laid in tables:
            across = laid.spec.name == spec.x  # one run has a whole curve: the columns of a table, which are numbers
            if not across and (laid.spec.columns != spec.x or laid.spec.metric not in spec.metrics):
                continue
            for row, cells in laid.rows:
                for cell in cells:
                    summary = cell.summary
                    if "so far" in cell.reason:  # some of the replicates are no fair point of a curve
                        continue
                    if row.name in names and summary is not None and math.isfinite(summary.mean):
                        se = math.nan if summary.se is None else summary.se
                        rows.append(
                            {"model": names[row.name], "n_train": float(cell.column), "mean": summary.mean, "se": se,
                             "metric": spec.metrics[0] if across else laid.spec.metric}
                        )  # fmt: skip
        if rows:
            data = ", ".join(dict.fromkeys(d for laid in tables for d in laid.data))
            settings = f", settings {shown[0].preset}" if alike and shown[0].preset else ""
            titles = {laid.spec.name: laid.spec.title.partition(" (")[0] for laid in tables}
            along = f"{' and '.join(map(in_words, spec.metrics))} against {spec.x.split('.')[-1]}"
            shows = titles.get(spec.x, along)
            caption = f"{shows}, mean ± SE{settings}; data: {data}"
            drawn[spec.name] = (learning_curve(pd.DataFrame(rows), spec.label), caption)
    return drawn


def _numbers(tables: list[Laid], path: Path) -> None:
    """Every cell as one line of CSV, with full precision."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["table", "model", "published row", "settings", "column", "metric", "published", "published mean",
             "published SE", "mean", "SE", "n", "lost", "best", "difference in SE", "verdict", "why", "data",
             "paired difference", "its SE", "p worse", "p worse, Holm", "runs"]
        )  # fmt: skip
        for laid in tables:
            spec = laid.spec
            for row, cells in laid.rows:
                for c in cells:
                    s, n, pair = c.summary, c.number, c.against
                    metric = spec.metric_of(c.column)
                    line = [
                        spec.name, row.model, row.printed, row.preset, c.column, metric,
                        *((n.text, n.mean, n.se) if n else ("",) * 3),
                        *((s.mean, s.se, s.n, s.lost) if s else ("",) * 4), int(c.bold), c.verdict.in_se, c.verdict.word,
                        c.verdict.why, c.data, *((pair.difference, pair.se, pair.p_worse, pair.p_holm) if pair else ("",) * 4),
                        " ".join(f"{f.parent.name}/{f.name}" for f in c.folders),
                    ]  # fmt: skip
                    writer.writerow(map(as_word, line))


def _replicates(tables: list[Laid], path: Path) -> None:
    """Every replicate's score as one line of CSV, which ``--with`` reads."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for laid in tables:
            for row, cells in laid.rows:
                for c in cells:
                    for (seed, replicate), score in sorted(c.values.items()):
                        line = [laid.spec.name, row.name, c.column, c.data, seed, replicate, score]
                        writer.writerow(map(as_word, line))


def _png(figure: Figure) -> bytes:
    from components.figures.labels import readable

    buffer = io.BytesIO()
    readable(figure).savefig(buffer, format="png", dpi=150, bbox_inches="tight")
    return buffer.getvalue()


def markdown(text: object) -> str:
    """Words of a study or a record as Markdown shows them, whatever signs of Markdown or HTML are among them."""
    special = r"([\\`*\[\]<>|~]|(?<!\w)_|_(?!\w))"  # an underscore inside a word means nothing
    return re.sub(special, r"\\\1", " ".join(str(text).split()))


def write(
    name: str,
    study: StudyDefinition,
    snapshot: Snapshot | None,
    folder: Path,
    earlier: EarlierScores | None = None,
    paper: bool = False,
) -> tuple[list[Path], list[Laid]]:
    """Writes the report into a folder: what was written, the page first, and the tables it shows; ``paper``: and, into
    ``paper/`` there, what a paper takes from it."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from runner.report.table_figure import table_figure

    tables = lay(study, snapshot, earlier)
    runs = run_views(snapshot) if snapshot else []
    drawn = _curves(study, tables) | evolutions(study, snapshot) | spreads(study, snapshot, tables)
    folder.mkdir(parents=True, exist_ok=True)
    figures, written = [], []
    for stem, (figure, caption) in drawn.items():
        content = _png(figure)
        write_bytes(folder / f"{stem}.png", content)
        figures.append({"file": f"{stem}.png", "caption": caption, "base64": base64.b64encode(content).decode()})
        written.append(folder / f"{stem}.png")
    for laid in tables:
        written.append(folder / f"table_{laid.spec.name}.png")
        write_bytes(written[-1], _png(table_figure(laid)))
    context = {
        "name": name,
        "description": study.description,
        "notes": notes(snapshot, tables, runs),
        "tables": [table_view(laid) for laid in tables],
        "reference": study.reference,
        "figures": figures,
        "provenance": provenance(study, snapshot, runs),
        "runs": runs,
    }
    page = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=lambda file: str(file).endswith(".html.j2"),
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    page.filters["md"] = markdown
    for suffix in ("html", "md"):
        path = folder / f"{name}.{suffix}"
        write_text(path, page.get_template(f"template.{suffix}.j2").render(context))
        written.append(path)
    _numbers(tables, folder / f"{name}.csv")
    _replicates(tables, folder / f"{name}_replicates.csv")
    written = [*reversed(written), folder / f"{name}.csv", folder / f"{name}_replicates.csv"]
    if paper:
        from runner.report.paper import write_paper

        pictures = {stem: figure for stem, (figure, _) in drawn.items()}
        written += write_paper(name, folder / "paper", tables, pictures, snapshot)
    return written, tables


def main(argv: list[str]) -> int:
    """Writes the report of a study from its records; runs nothing."""
    parser = Parser(
        prog="runner report", description="Lays the results of a study beside the published numbers; runs nothing."
    )
    parser.add_argument("study", help="name of a study, or that under which it was launched (--as)")
    parser.add_argument("--to", type=Path, help="folder to write to (default: <output-dir>/<study>/report)")
    parser.add_argument("--output-dir", default="outputs", help="where runs are recorded (default: outputs)")
    parser.add_argument(
        "--with",
        dest="earlier",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a <study>_replicates.csv of an earlier report or of another machine, whose scores count as well",
    )
    parser.add_argument(
        "--paper", action="store_true", help="also LaTeX tables, figures as wide as a column and references, in paper/"
    )
    conf_folders.add_option(parser)
    plugins.add_option(parser, "as for runner study; a report imports none")
    given = parser.parse_args(argv[1:])
    conf_folders.use(given.config_dir)
    output_dir = Path(given.output_dir).resolve()
    name = Path(given.study).stem if given.study.endswith(".yaml") else given.study
    snapshot = snapshots.load(name, output_dir)
    study = snapshot.study if snapshot else load_study(given.study)
    folder = given.to or inside(output_dir, name, "study") / "report"
    earlier = read_earlier(given.earlier, study)
    try:
        written, tables = write(name, study, snapshot, folder, earlier, given.paper)
    except OSError as error:
        raise ConfigError(f"--to {folder}: cannot be written ({error.strerror})") from None
    counts: dict[str, int] = {}
    for laid in tables:
        for _, cells in laid.rows:
            for cell in cells:
                counts[cell.verdict.word] = counts.get(cell.verdict.word, 0) + 1
    out.print(f"study {name}: " + ", ".join(f"{n} {word}" for word, n in counts.items()), markup=False)
    for path in written:
        out.print(f"written  {path}", markup=False)
    return 0
