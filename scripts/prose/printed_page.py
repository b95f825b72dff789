"""``printed.md``: how many numbers the papers print, how many have kept scores next to them, and
why the others have none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from scripts.prose.fields import MARKER
from scripts.prose.printed import (
    REASONS,
    PrintedCell,
    Reason,
    assign_reasons,
    collect_cells,
    read_reasons,
)
from scripts.prose.scores import FOLDER

NAME = "printed.md"
NOTICE = f"<!-- made by make results from conf/published, kept scores and {REASONS} -->\n"
KINDS = {"table": "in tables", "figure": "in figures and captions", "": "in sentences"}


def make_printed(folder: Path = FOLDER) -> tuple[str, list[str]]:
    """Text of the page, and errors of its reasons."""
    reasons = read_reasons(folder / REASONS)
    cells = collect_cells(folder)
    assigned, errors = assign_reasons(reasons.reasons, cells)
    every = list(cells.values())
    lines = [
        *_write_head(every, reasons.printed),
        *_write_tables(every, folder),
        *_write_open(assigned),
    ]
    return re.sub(r"[ \t]+\n", "\n", "\n".join(lines) + "\n"), errors


def _count(cells: list[PrintedCell]) -> tuple[int, int, int]:
    """Numbers printed, with kept scores, and of these with enough replicates."""
    kept = [cell for cell in cells if cell.replicates]
    return len(cells), len(kept), sum(not cell.is_open for cell in kept)


def _count_verdicts(cells: list[PrintedCell]) -> str:
    words = Counter(cell.verdict for cell in cells if cell.replicates)
    return ", ".join(f"{n} {word}" for word, n in words.most_common())


def _name_kind(table: str) -> str:
    return next((kind for kind in KINDS if kind and f"_{kind}_" in table), "")


def _name_places(cells: list[PrintedCell]) -> str:
    """``Boustati (2021): Table 3.1, section 3.5.2; Table A.2, appendix A.2.2``."""
    places: dict[str, dict[str, None]] = {}
    for cell in cells:
        places.setdefault(cell.table.source, {})[cell.table.where] = None
    return "; ".join(f"{source}: {'; '.join(where)}" for source, where in places.items())


def _write_head(cells: list[PrintedCell], declared: dict[str, int]) -> Iterator[str]:
    listed, kept, enough = _count(cells)
    papers = Counter(cell.table.source for cell in cells)
    unlisted = {p: n - papers[p] for p, n in declared.items() if n > papers[p]}
    kinds = Counter(_name_kind(cell.table.name) for cell in cells)
    places = ", ".join(f"{kinds[kind]} {words}" for kind, words in KINDS.items() if kinds[kind])
    yield f"{NOTICE}\n# Printed numbers\n"
    yield (
        f"Of {listed + sum(unlisted.values())} printed numbers {kept} have kept scores next to "
        f"them, {enough} of these of five replicates or more (or of as many as print has, where "
        "that is fewer). [Open numbers](#open-numbers) lists the others with the reason.\n"
    )
    yield f"`conf/published` holds {listed}: {places}. Bardenet (2021) prints no results.\n"
    if unlisted:
        left = ", ".join(f"{n} of {paper}" for paper, n in unlisted.items())
        yield f"Not in `conf/published` yet, and so without kept scores: {left}.\n"
    yield (
        "Verdicts, by the comparable row with the most replicates, or else by the row with the "
        f"most: {_count_verdicts(cells)}.\n"
    )


def _write_tables(cells: list[PrintedCell], folder: Path) -> Iterator[str]:
    yield "## By table\n"
    yield (
        "| table | printed numbers | with kept scores | five replicates or more "
        "| without kept scores | verdicts | studies |"
    )
    yield "|---|---:|---:|---:|---:|---|---|"
    for name in dict.fromkeys(cell.table.name for cell in cells):
        own = [cell for cell in cells if cell.table.name == name]
        printed, kept, enough = _count(own)
        studies = (
            f"[{study}]({study}.md)" if (folder / f"{study}.md").is_file() else f"`{study}`"
            for study in dict.fromkeys(study for cell in own for study in cell.studies)
        )
        yield (
            f"| {_name_places(own)} | {printed} | {kept} | {enough} | {printed - kept} "
            f"| {_count_verdicts(own)} | {', '.join(studies)} |"
        )


def _write_open(assigned: list[tuple[Reason, list[PrintedCell]]]) -> Iterator[str]:
    yield "\n## Open numbers\n"
    yield (
        "No kept score, or too few replicates. CPU hours are estimated from the times of the "
        "studies' own runs.\n"
    )
    yield "| table | row | column | numbers | replicates | reason | CPU hours |"
    yield "|---|---|---|---:|---:|---|---:|"
    for reason, cells in assigned:
        counts = [cell.replicates for cell in cells]
        low, high = min(counts), max(counts)
        rows = "; ".join(dict.fromkeys(cell.row for cell in cells))
        columns = "; ".join(dict.fromkeys(cell.column for cell in cells))
        span = f"{low} to {high}" if low < high else f"{low}"
        text = MARKER.sub(r"\2", " ".join(reason.reason.split()))
        hours = "–" if reason.hours is None else f"{reason.hours:g}"
        yield (
            f"| {_name_places(cells)} | {rows} | {columns} | {len(cells)} | {span} | {text} "
            f"| {hours} |"
        )
