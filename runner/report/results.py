"""Tables of a study: cells with verdicts, the best cells of each column, and comparisons of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from runner.record.outcomes import McNemar, compare_outcomes
from runner.report.origin import Kept
from runner.report.run_views import run_views
from runner.report.scores.cells import Cell, TableLayout
from runner.report.scores.gathering import gather_cell
from runner.statistics.paired_tests import (
    PairedDifference,
    best,
    compare_means,
    holm,
    holm_p,
)
from runner.statistics.published import Published, load_published
from runner.statistics.verdicts import Verdict, judge
from runner.study.definition import StudyDefinition
from runner.study.snapshot import Snapshot
from runner.study.table_specs import POOLED_KEY, TableSpec

Tests = dict[tuple[str, str], PairedDifference]  # by row and column


def _set_verdicts(cells: list[Cell], published: Published | None, table: TableSpec) -> None:
    """Set the verdicts of the cells of a table, with p-values corrected for the number of cells."""
    judges = [_make_judge(cell, published, table) for cell in cells]
    corrected = holm_p({i: to_verdict().p for i, to_verdict in enumerate(judges)})
    for i, cell in enumerate(cells):
        cell.verdict = judges[i](p=corrected[i])


def _make_judge(
    cell: Cell, published: Published | None, table: TableSpec
) -> Callable[..., Verdict]:
    """Bind the arguments of ``judge`` for a cell, and set its published number."""
    cell.number = (
        published.number(cell.row.published_label, table.published_column or cell.column)
        if published
        else None
    )
    reason = cell.reason
    if cell.values and published:
        if not published.is_comparable_on(cell.data):
            reason = f"other data: {cell.data}"
        reason = table.find_obstacle(cell.row) or published.not_comparable or reason
    if cell.values:
        reason = cell.other_protocol or reason
    return partial(
        judge,
        cell.number,
        cell.judged(table),
        table.column_direction(cell.column) if table.contest else None,
        reason,
        table.is_by_construction(cell.row.name, cell.column),
    )


def compare_with(laid: TableLayout, to: str, by_row: bool = True) -> Tests:
    """Comparisons of all cells of a table with the cells of one row or one column, with p-values
    corrected for the number of comparisons.
    """
    scored = [cell for cell in laid.cells if cell.values and not cell.other_protocol]
    by_place = {(cell.row.name, cell.column): cell for cell in scored}
    return holm(
        {
            (row, column): compare_means(cell.values, other.values, cell.overlap)
            for (row, column), cell in by_place.items()
            if (other := by_place.get((to, column) if by_row else (row, to))) and cell is not other
        }
    )


def _test_by_label(cell: Cell, reference: Cell, metric: str) -> McNemar | None:
    """McNemar's test of a cell against the reference cell; None unless both have the same single
    replicate and stored outcomes.
    """
    is_one_each = (
        len(cell.values) == len(reference.values) == 1
        and cell.values.keys() == reference.values.keys()
    )
    if not is_one_each or len(cell.folders) != 1 or len(reference.folders) != 1:
        return None
    return compare_outcomes(cell.folders[0], reference.folders[0], metric)


def _mark_best(cells: list[Cell], table: TableSpec) -> None:
    """Mark the best cells of a column."""
    scored = {cell.row.name: cell for cell in cells if cell.values and not cell.other_protocol}
    if not table.bold or len({cell.data for cell in scored.values()}) != 1:
        return
    overlap = max(cell.overlap for cell in scored.values())
    rows = {name: cell.values for name, cell in scored.items()}
    for name in best(rows, table.column_direction(cells[0].column), overlap=overlap):
        scored[name].bold = True


def _set_comparisons(laid: TableLayout, reference_row: str) -> None:
    """Compare all cells of a table with the reference row's."""
    by_place = {(cell.row.name, cell.column): cell for cell in laid.cells}
    for (row, column), pair in compare_with(laid, reference_row).items():
        cell = by_place[row, column]
        cell.against = pair
        metric = laid.spec.column_metric(column)
        cell.by_label = _test_by_label(cell, by_place[reference_row, column], metric)


def layout_table(
    study: StudyDefinition, snapshot: Snapshot | None, kept: Kept | None = None
) -> list[TableLayout]:
    """Build all tables of a study from records and kept scores: cells with verdicts, the best of
    each column in bold, and comparisons with the reference row.
    """
    kept = kept or Kept()
    runs = run_views(snapshot)
    laid = []
    for table in study.tables:
        published = load_published(table.published) if table.published else None
        columns = study.columns(table)
        rows = [
            (row, [gather_cell(runs, kept, study, table, row, column) for column in columns])
            for row in study.rows
            if table.rows is None or row.name in table.rows
        ]
        data = list(dict.fromkeys(c.data for _, line in rows for c in line if c.data))
        laid.append(TableLayout(table, published, columns, rows, data))
        _set_verdicts(laid[-1].cells, published, table)
        for cells in zip(*(line for _, line in rows), strict=True):
            _mark_best(list(cells), table)
        if study.reference:
            _set_comparisons(laid[-1], study.reference)
    return laid


def restrict_to_kept_rows(
    tables: list[TableLayout], kept_rows: dict[str, list[str]]
) -> list[TableLayout]:
    """Restrict tables to rows with scores and rows that existed when the scores were stored.

    Other rows were added to the study later, or do not apply to the table, and were never run.
    ``kept_rows`` are the names of the stored rows by table.
    """
    return [
        replace(
            laid,
            rows=[
                (row, cells)
                for row, cells in laid.rows
                if row.name in kept_rows.get(laid.spec.name, ()) or any(c.values for c in cells)
            ],
        )
        for laid in tables
    ]


def describe_replicates(study: StudyDefinition, replicates: list[int]) -> str:
    """Describe the number of replicates and the pooled seeds."""
    counts = " or ".join(str(n) for n in sorted(set(replicates)))
    seeds = study.grid.get(POOLED_KEY)
    return f"{counts} per run" + (f", seeds {', '.join(map(str, seeds))} pooled" if seeds else "")
