"""Tables of a study: every cell with its verdict, the best of a column, and comparisons of rows."""

from __future__ import annotations

from dataclasses import replace

from runner.record.outcomes import McNemar, compare_outcomes
from runner.report.origin import Kept
from runner.report.run_views import run_views
from runner.report.scores.cells import Cell, TableLayout
from runner.report.scores.gathering import gather_cell
from runner.statistics.paired_tests import best, compare, holm
from runner.statistics.published import Published, load_published
from runner.statistics.verdicts import judge
from runner.study.definition import StudyDefinition
from runner.study.snapshot import Snapshot
from runner.study.table_specs import POOLED_KEY, Row, TableSpec


def _set_verdict(cell: Cell, published: Published | None, table: TableSpec) -> None:
    """The verdict on a cell, and why it is what it is."""
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
    cell.verdict = judge(
        cell.number,
        cell.judged(table),
        table.column_direction(cell.column) if table.contest else None,
        reason,
        table.is_by_construction(cell.row.name, cell.column),
    )


def _test_by_label(cell: Cell, reference: Cell, metric: str) -> McNemar | None:
    """McNemar's test of a cell against the reference's; None: not of the same one replicate, or
    outcomes are not kept."""
    is_one_each = (
        len(cell.values) == len(reference.values) == 1
        and cell.values.keys() == reference.values.keys()
    )
    if not is_one_each or len(cell.folders) != 1 or len(reference.folders) != 1:
        return None
    return compare_outcomes(cell.folders[0], reference.folders[0], metric)


def _compare_column(
    cells: dict[str, Cell], reference_row: str | None, table: TableSpec, column: str
) -> None:
    """Mark the best cells of a column, and compare all with the reference row's cell."""
    better = table.column_direction(column)
    scored = {name: cell for name, cell in cells.items() if cell.values and not cell.other_protocol}
    if table.bold and len({cell.data for cell in scored.values()}) == 1:
        overlap = max(cell.overlap for cell in scored.values())
        rows = {name: cell.values for name, cell in scored.items()}
        for name in best(rows, better, overlap=overlap):
            cells[name].bold = True
    reference = scored.pop(reference_row or "", None)
    if reference is None:
        return
    metric = table.column_metric(column)
    pairs = {
        name: compare(cell.values, reference.values, cell.overlap) for name, cell in scored.items()
    }
    for name, pair in holm(pairs).items():
        cells[name].against = pair
        cells[name].by_label = _test_by_label(cells[name], reference, metric)


def layout_cell(
    study: StudyDefinition,
    table: TableSpec,
    row: Row,
    column: str,
    kept: Kept,
    published: Published | None,
) -> Cell:
    """One cell of kept scores with its verdict; ``published``: the table's."""
    cell = gather_cell([], kept, study, table, row, column)
    _set_verdict(cell, published, table)
    return cell


def layout_table(
    study: StudyDefinition, snapshot: Snapshot | None, kept: Kept | None = None
) -> list[TableLayout]:
    """Every table of a study: cells with verdicts, bold type by column, and comparisons with the
    reference row, from records and kept scores."""
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
        for i, column in enumerate(columns):
            cells = {row.name: line[i] for row, line in rows}
            for cell in cells.values():
                _set_verdict(cell, published, table)
            _compare_column(cells, study.reference, table, column)
        data = list(dict.fromkeys(c.data for _, line in rows for c in line if c.data))
        laid.append(TableLayout(table, published, columns, rows, data))
    return laid


def restrict_to_kept_rows(
    tables: list[TableLayout], kept_rows: dict[str, list[str]]
) -> list[TableLayout]:
    """The tables with the rows that they had when their scores were kept and those that have
    scores: others came into the study since, or are of no use in this table, and were never run.

    ``kept_rows``: by table.
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
    """How replicates came about, in words."""
    counts = " or ".join(str(n) for n in sorted(set(replicates)))
    seeds = study.grid.get(POOLED_KEY)
    return f"{counts} a run" + (f", seeds {', '.join(map(str, seeds))} pooled" if seeds else "")
