"""Table and picture of the results in README.md, from the scores kept in docs/results.

    python -m scripts.readme_table            write both (part of make results)
    python -m scripts.readme_table --check    write nothing, fail if the table differs

Each row shows a number of a study next to the published one, and the verdict counts over all
comparable numbers of that study.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from components.figures.style import BLUE, Axes, legend_below, new_figure
from runner.disk.atomic import write_text
from runner.report.scores.cells import Cell
from scripts.outputs.pictures import reduce_colours
from scripts.pages import render
from scripts.prose.cells import count_finite, estimate_centre
from scripts.prose.estimate import Estimate
from scripts.prose.scores import FOLDER, KeyedCell, Lookup, load_tables

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "pictures" / "results.png"
BLOCK = re.compile(r"(<!-- results: make results -->\n).*?(<!-- end -->)", re.DOTALL)
COUNTED = {
    "agrees": "agree",
    "agrees by construction": "agree by construction",
    "better": "better",
    "worse": "worse",
    "differs": "differ",
    "indicative": "indicative",
}


@dataclass(frozen=True)
class Entry:
    """A study in the table and its panel in the picture."""

    study: str
    table: str
    row: str  # row and column of the number in README.md
    column: str
    quantity: str
    source: str
    panel_rows: str  # regular expression of rows in the panel; its group is the label
    by_column: bool = False  # True if the panel shows all columns of the rows
    log: bool = False


ENTRIES = [
    Entry(**entry)
    for entry in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
]


def find_cell(entry: Entry) -> KeyedCell:
    """Cell of an entry."""
    return Lookup(FOLDER).find_one(f"{entry.study}:{entry.row}:{entry.column}:{entry.table}")


def list_cells(study: str, table: str | None = None) -> list[Cell]:
    """Cells of a study, or of one of its tables."""
    tables = load_tables(FOLDER, study)
    return [cell for name in ([table] if table else tables) for cell in tables[name].cells]


def count_verdicts(study: str) -> Counter[str]:
    """Verdict counts over the numbers of a study that are comparable with published ones."""
    words = (cell.verdict.word for cell in list_cells(study))
    return Counter(word for word in words if word in COUNTED)


def table_row(entry: Entry) -> tuple[str, ...]:
    """Line of the table."""
    cell = find_cell(entry)
    number = cell.cell.number
    if number is None:
        raise ValueError(f"{cell}: no printed number")
    counts = count_verdicts(entry.study)
    return (
        f"[{entry.study}](docs/results/{entry.study}.md)",
        f"{entry.quantity} ({entry.source})",
        str(Estimate(number.mean, number.se, 2)),
        str(estimate_centre(cell)),
        str(count_finite(cell)),
        cell.cell.verdict.word,
        ", ".join(f"{counts[word]} {COUNTED[word]}" for word in COUNTED if counts[word]),
    )


def table() -> str:
    """Table in Markdown."""
    return render("readme_table", rows=map(table_row, ENTRIES))


def panel_cells(entry: Entry) -> list[tuple[str, Cell]]:
    """Label and cell of each line of a panel."""
    lines = []
    for cell in list_cells(entry.study, entry.table):
        match = re.match(entry.panel_rows, cell.row.name)
        is_shown = entry.by_column or cell.column == entry.column
        if match and is_shown and cell.number is not None and cell.summary is not None:
            names = [*match.groups(), cell.column]
            lines.append((" ".join(names if entry.by_column else names[:1]), cell))
    return lines


def draw_panel(axes: Axes, entry: Entry) -> None:
    """Draw the published means and ours as lines of a panel, with two standard errors."""
    lines = panel_cells(entry)
    places = np.arange(len(lines))
    published = [(cell.number.mean, cell.number.uncertainty) for _, cell in lines]
    ours = [(cell.summary.mean, cell.summary.se or 0.0) for _, cell in lines]
    grey = {"fmt": "D", "color": "0.45", "markerfacecolor": "white", "label": "published"}
    blue = {"fmt": "o", "color": BLUE, "label": "ours"}
    for numbers, shift, style in ((published, -0.15, grey), (ours, 0.15, blue)):
        means, errors = np.transpose(numbers)
        axes.errorbar(means, places + shift, xerr=2 * errors, **style)
    axes.set_yticks(places, [label for label, _ in lines], fontsize=8)
    axes.invert_yaxis()
    if entry.log:
        axes.set_xscale("log")
    axes.set_title(f"{entry.study} ({entry.source})", fontsize=10)
    axes.set_xlabel(entry.quantity.partition(":")[2].strip().partition(" on ")[0])


def draw(target: Path) -> None:
    """Draw the picture with a panel for each study."""
    figure, panels = new_figure(2, 3, width=4.3, height=3.5)
    for axes, entry in zip(panels, ENTRIES, strict=True):
        draw_panel(axes, entry)
    legend_below(figure, panels[:1], fontsize=10)
    figure.suptitle("Published and our means, ± 2 standard errors", x=0.01, ha="left")
    figure.savefig(target, dpi=100)
    target.write_bytes(reduce_colours(target.read_bytes()))


def main(argv: list[str]) -> int:
    """Write table and picture; with --check returns 1 if the table differs."""
    old = README.read_text(encoding="utf-8")
    new = BLOCK.sub(lambda match: f"{match[1]}{table()}{match[2]}", old)
    if "--check" in argv:
        print("README's table", "matches" if new == old else "differs from", "the kept scores")
        return int(new != old)
    if new != old:
        write_text(README, new)
    draw(PICTURE)
    print(f"written  README.md (results), {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
