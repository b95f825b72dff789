r"""Material of a study for a paper.

It has LaTeX tables, figures as wide as a column, and the references of all that was
used.

Tables require ``booktabs`` and ``siunitx``: mean \pm SE in ``S`` columns, the best in
bold as in the other forms of the report, published numbers in a row below the numbers
that they are compared with, each in the number of decimals that the study names.  A
table that is wider than the line is made smaller (``graphicx``).  Figures are PDF and
SVG.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from runner.disk.atomic import write_bytes, write_text
from runner.report.figures.picture import Picture
from runner.report.results import Cell, Row, TableLayout
from runner.study.snapshot import Snapshot
from runner.terminal.plain import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN_WIDTH_INCHES = 3.3  # inches: a column of the usual two-column style
SMALLEST = 6.0  # points, of letters that are made smaller with their figure
LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "−": "$-$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "θ": r"$\theta$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "σ": r"$\sigma$",
    "τ": r"$\tau$",
    "∞": r"$\infty$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "…": r"\dots{}",
    "R̂": r"$\widehat{R}$",
    "†": r"$\dagger$",
    "–": "--",
}
LATEX_SPECIAL_PATTERN = re.compile(
    "|".join(re.escape(sign) for sign in sorted(LATEX_ESCAPES, key=len, reverse=True))
)
SOFTWARE = {  # package: its entry in components/references.bib; the version goes with it
    "bayes-runner": "bayes_runner",
    "torch": "paszke2019",
    "gpytorch": "gardner2018",
    "hydra-core": "yadan2019",
    "mlflow": "zaharia2018",
    "numpy": "harris2020",
    "scipy": "virtanen2020",
    "scikit-learn": "pedregosa2011",
    "matplotlib": "hunter2007",
}
CAPTIONS = {"mean": "Mean and standard error", "median": "Median and interquartile range"}
TESTS = ("wilcoxon1945", "holm1979")  # packages that reports themselves use


def latex(text: str) -> str:
    """Text in LaTeX, with any special characters escaped."""
    return LATEX_SPECIAL_PATTERN.sub(lambda found: LATEX_ESCAPES[found.group()], plain(text))


def _entry(cell: Cell, laid: TableLayout) -> str:
    """``mean \\pm SE`` for an S column, bold where the report has it so; ``{--}`` where nothing was
    run."""
    estimate = cell.centre(laid.spec)
    digits = laid.spec.digits
    if estimate is None:
        return "{--}"
    centre, spread = estimate
    text = (
        f"{centre:.{digits}f}"
        if spread is None
        else f"{centre:.{digits}f} \\pm {spread:.{digits}f}"
    )
    return f"\\bfseries {text}" if cell.bold else text


def _format_cell(cell: Cell, digits: int) -> str:
    number = cell.number
    if number is None or number.mean is None:
        return "{--}"
    return f"{number.mean:.{digits}f}" + (
        f" \\pm {number.se:.{digits}f}" if number.se is not None else ""
    )


def table(laid: TableLayout, name: str, smoke: bool = False) -> str:
    """A ``table`` with a row for each of the study's rows that was run.

    If the papers print a row, it is below all rows that are compared with it.
    """
    ran = [
        (row, cells) for row, cells in laid.rows if any(cell.centre(laid.spec) for cell in cells)
    ] or laid.rows
    width = int(any(row.preset for row, _ in ran))
    mark = r"\textbf{Smoke run, no result.} " if smoke else ""
    columns = "l" * (1 + width) + " S[separate-uncertainty]" * len(laid.columns)
    lines = [
        f"% {name}, {laid.spec.name}; needs \\usepackage{{booktabs, siunitx, graphicx}} and \\sisetup{{detect-weight=true}}",
        r"\begin{table}",
        r"\centering",
        f"\\caption{{{mark}{latex(laid.spec.title)}. {CAPTIONS[laid.spec.centre]}.}}",
        f"\\label{{tab:{name}_{laid.spec.name}}}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        f"\\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(["{}"] * (1 + width) + [f"{{{latex(column)}}}" for column in laid.columns])
        + r" \\",
        r"\midrule",
    ]
    groups = itertools.groupby(ran, key=lambda line: line[0].published_label)
    for i, (_, group) in enumerate(groups):
        if i:
            lines.append(r"\addlinespace")
        lines += _group_lines(list(group), laid, width)
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{table}", ""])


def _group_lines(
    rows: list[tuple[Row, list[Cell]]], laid: TableLayout, width: int
) -> Iterator[str]:
    """Rows that are compared with the same published row, and below them that row.

    ``width``: columns between the label and the scores.
    """
    for row, cells in rows:
        head = [latex(row.label), latex(row.preset)][: 1 + width]
        yield " & ".join([*head, *(_entry(cell, laid) for cell in cells)]) + r" \\"
    if any(cell.number is not None for cell in cells):
        theirs = [_format_cell(cell, laid.spec.digits) for cell in cells]
        yield " & ".join([r"\quad published", *[""] * width, *theirs]) + r" \\"


def fit_to_column(figure: Figure) -> Figure:
    """The figure as wide as a column, its letters smaller with it but never too small to read."""
    from matplotlib.text import Text

    width, height = figure.get_size_inches()
    factor = COLUMN_WIDTH_INCHES / width
    if factor < 1:
        for text in figure.findobj(Text):
            text.set_fontsize(max(SMALLEST, text.get_fontsize() * max(factor, 0.7)))
        figure.set_size_inches(COLUMN_WIDTH_INCHES, height * factor)
    return figure


def bibliography(snapshot: Snapshot | None) -> str:
    """Every entry that a record of the study's runs cites, once, in the order of keys.

    It also has the entries of the tests and of the software, in the versions that the runs
    have recorded.
    """
    from importlib.metadata import version

    from runner.record.citations import entries as read

    bodies = {entry.key: entry.body for entry in read()}
    entries = {key: bodies[key] for key in TESTS}
    versions: dict[str, dict[str, None]] = {}
    for run in snapshot.runs if snapshot else []:
        if snapshot and run.signature:
            path = snapshot.folder(run) / "references.bib"
            entries |= {entry.key: entry.body for entry in read(path)} if path.is_file() else {}
            for package, number in ((snapshot.facts(run) or {}).get("versions") or {}).items():
                versions.setdefault(package, {})[number] = None
    for package, key in SOFTWARE.items():
        used = " and ".join(versions.get(package) or [version(package)])
        entries[key] = f"{bodies[key].rstrip().removesuffix('}')}  note = {{Version {used}}},\n}}"
    return "\n\n".join(entries[key] for key in sorted(entries)) + "\n"


def write_paper(
    name: str,
    folder: Path,
    tables: list[TableLayout],
    pictures: dict[str, Picture],
    snapshot: Snapshot | None,
    smoke: bool = False,
) -> list[Path]:
    """Writes ``table_….tex``, ``….pdf``, ``….svg`` and ``references.bib`` into a folder: what was
    written."""
    import io

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for laid in tables:
        paths.append(folder / f"table_{laid.spec.name}{'_smoke' if smoke else ''}.tex")
        write_text(paths[-1], table(laid, name, smoke))
    for stem, picture in pictures.items():
        figure = fit_to_column(picture.figure)
        for form in ("pdf", "svg"):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=form, bbox_inches="tight")
            paths.append(folder / f"{stem}.{form}")
            write_bytes(paths[-1], buffer.getvalue())
    paths.append(folder / "references.bib")
    write_text(paths[-1], bibliography(snapshot))
    return paths
