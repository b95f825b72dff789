"""Report of a study: pages, figures, and files of scores."""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from runner.disk.atomic import write_bytes
from runner.report.context import describe_study, provenance
from runner.report.csv_files import write_numbers, write_replicates
from runner.report.details import details
from runner.report.differs import comparison_row, differs
from runner.report.figures.draw import draw_figures
from runner.report.figures.picture import Picture, mark_smoke
from runner.report.notes import describe_part, notes
from runner.report.origin import (
    Kept,
    Origin,
    collect_cell_facts,
    collect_protocols,
    write_origin,
)
from runner.report.pages import embed_figures, write_page
from runner.report.results import layout_table, restrict_to_kept_rows
from runner.report.run_views import run_views
from runner.report.scores.cells import TableLayout, list_cells
from runner.report.wording import describe_outcome
from runner.study.definition import StudyDefinition
from runner.study.snapshot import Snapshot


def _figures(
    study: StudyDefinition,
    snapshot: Snapshot | None,
    tables: list[TableLayout],
    kept: Kept,
    folder: Path,
    smoke: bool,
) -> tuple[dict[str, Picture], list[dict[str, Any]]]:
    """Drawn figures, and all figures for the pages, with their PNG files written.

    Figures drawn from records that are not available here are taken from the kept scores.
    """
    new_pictures = draw_figures(study, snapshot, tables)
    pictures = kept.pictures()
    if smoke:
        new_pictures = {
            f"{stem}_smoke": picture._replace(figure=mark_smoke(picture.figure))
            for stem, picture in new_pictures.items()
        }
    views = []
    for stem in dict.fromkeys([*pictures, *new_pictures]):
        picture = new_pictures.get(stem)
        content = picture.render() if picture else pictures[stem][1].read_bytes()
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


def write(
    name: str,
    study: StudyDefinition,
    snapshot: Snapshot | None,
    folder: Path,
    kept: Kept | None = None,
    paper: bool = False,
    forms: Collection[str] = ("html", "md"),
    only: Sequence[str] = (),
) -> tuple[list[Path], list[TableLayout]]:
    """Write the report into a folder; return the files, the page first, and the tables.

    With ``paper``, LaTeX material is written to the subfolder ``paper/``; ``forms`` are the formats
    of the pages; ``only`` is the selection of ``study`` and ``snapshot``.  If the report includes a
    smoke run, its title, files and figures are marked.
    """
    kept = kept or Kept()
    tables = layout_table(study, snapshot, kept)
    runs = run_views(snapshot)
    smoke = any(run.facts.get("smoke") for run in runs)
    stem = f"{name}_smoke" if smoke else name
    folder.mkdir(parents=True, exist_ok=True)
    new_pictures, figures = _figures(study, snapshot, tables, kept, folder, smoke)
    paths = [folder / figure["file"] for figure in figures]
    row_changes = kept.origin.differs | differs(snapshot)
    page_tables = tables
    if snapshot is None and kept.origin.rows:
        page_tables = restrict_to_kept_rows(tables, kept.origin.rows)
    page_rows = dict.fromkeys(row.name for laid in page_tables for row, _ in laid.rows)
    part = describe_part(only, runs, with_earlier=not kept.scores.empty)
    has_earlier = snapshot is None or any(cell.earlier for cell in list_cells(tables))
    earlier = kept.origin if has_earlier else Origin()
    messages = [*part, *notes(snapshot, tables, runs, earlier)]
    came_from = provenance(study, snapshot, runs, earlier.provenance)
    context = describe_study(study, page_tables) | {
        "name": name,
        "smoke": smoke,
        "outcome": describe_outcome(page_tables, study.reference),
        "notes": messages,
        "beside": comparison_row(study),
        "changes": {row: row_changes[row] for row in page_rows if row in row_changes},
        "figures": figures,
        "provenance": came_from,
        "runs": runs,
        "commands": [],
    }
    if "html" in forms:
        more = embed_figures(figures) | details(runs, folder)
        paths.append(write_page(folder / f"{stem}.html", context | more))
    if "md" in forms:
        paths.append(write_page(folder / f"{stem}.md", context))
    origin = Origin(
        came_from,
        messages,
        row_changes,
        collect_cell_facts(tables),
        {f["file"][:-4]: f["caption"] for f in figures},
        protocols=collect_protocols(tables, kept.origin),
    )
    paths.reverse()
    paths += [
        write_numbers(tables, folder / f"{stem}.csv"),
        write_replicates(tables, folder / f"{stem}_replicates.csv"),
        write_origin(origin, folder / f"{stem}_origin.json"),
    ]
    if paper:
        from runner.report.latex.paper import write_paper

        paths += write_paper(
            stem, folder / "paper", tables, new_pictures, runs, smoke, study.reference
        )
    return paths, tables
