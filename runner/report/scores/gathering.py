"""One cell of a table, gathered from the records of its runs and from earlier scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runner.compose.protocol import UNKNOWN, protocol_of
from runner.record.checks import failed_checks
from runner.report.origin import Kept
from runner.report.scores.cells import Cell
from runner.report.scores.distances import distances
from runner.report.scores.earlier import EarlierCell
from runner.report.scores.recorded import has_ended, scores
from runner.study.definition import StudyDefinition
from runner.study.plan import PlannedRun
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.table_specs import DISTANCES, Row, TableSpec


def _missing(snapshot: Snapshot, run: FrozenRun, facts: dict[str, Any] | None, metric: str) -> str:
    """Why a run has no scores of a metric; empty: it was not started."""
    if run.refused:
        return run.refused
    if facts is None:
        return ""
    if facts["state"] == "done":
        message = f"no {metric}: it or the row {snapshot.study.gold} has no predictions (keep_predictions=true, fresh=true)"
        return message if metric in DISTANCES else f"its result has no {metric}"
    return f"{facts['state']}: {facts['error']}" if facts.get("error") else facts["state"]


def belongs(run: FrozenRun | PlannedRun, table: TableSpec, row: str, column: str) -> bool:
    """True if a run's scores belong to this row and column."""
    return run.row == row and (
        isinstance(table.columns, dict) or str(run.cell.get(table.columns)) == column
    )


def metric_of(table: TableSpec, row: Row, column: str) -> str:
    """Name of a cell's score in its run's result."""
    metric = table.column_metric(column)
    return metric if row.part is None else f"{metric}/{row.part}"


def _over(snapshot: Snapshot, table: TableSpec, column: str) -> dict[tuple[int, int], float]:
    """Scores by which a column's scores are divided."""
    divisors: dict[tuple[int, int], float] = {}
    metric = next(
        (metric_of(table, row, column) for row in snapshot.study.rows if row.name == table.over), ""
    )
    for run in snapshot.runs:
        if (
            table.over is not None
            and belongs(run, table, table.over, column)
            and (facts := snapshot.facts(run))
        ):
            divisors |= scores(facts, snapshot.folder(run), metric)
    return divisors


def gather_cell(
    snapshot: Snapshot | None,
    kept: Kept,
    study: StudyDefinition,
    table: TableSpec,
    row: Row,
    column: str,
) -> Cell:
    """Gathers one cell from all runs that belong to it, and from earlier scores."""
    place = table.name, row.name, column
    cell = Cell(row, column, expected=kept.expected.get(place))
    metric = metric_of(table, row, column)
    reasons: dict[str, None] = {}
    contributing = []  # facts of the runs that have scores
    if snapshot:
        for run in snapshot.runs:
            if not belongs(run, table, row.name, column):
                continue
            if not run.refused:
                cell.expected = cell.expected or protocol_of(run.protocol_parts, metric)
            facts = snapshot.facts(run)
            run_scores = _run_scores(snapshot, run, table, column, metric) if facts else {}
            if facts is None or not run_scores:
                reasons[_missing(snapshot, run, facts, metric)] = None
                continue
            cell.values |= run_scores
            cell.data = facts["data"]
            cell.folders.append(snapshot.folder(run))
            contributing.append(facts)
            if not has_ended(facts):
                reasons[f"{len(run_scores)} of {facts['replicates']} replicates so far"] = None
    cell.doubted = any(failed_checks(facts) for facts in contributing)
    cell.smoke = any(facts.get("smoke") for facts in contributing)
    if contributing and cell.expected:
        cell.protocol = cell.expected.digest
    earlier_cell = kept.scores.get(place)
    if earlier_cell is not None:
        _add_earlier_scores(cell, earlier_cell, kept.origin.protocols)
    cell.overlap = study.overlap(column, cell.data)
    if earlier_cell is not None and not contributing and not any(reasons):
        cell.reason = earlier_cell.why  # no run here has a result
    else:
        cell.reason = _find_reason(cell, contributing, reasons)
    return cell


def _run_scores(
    snapshot: Snapshot, run: FrozenRun, table: TableSpec, column: str, metric: str
) -> dict[tuple[int, int], float]:
    """Scores of a run, divided by those of another row if the table says so."""
    facts = snapshot.facts(run) or {}
    run_scores = (
        distances(snapshot, run, facts, metric)
        if metric in DISTANCES
        else scores(facts, snapshot.folder(run), metric)
    )
    if run_scores and table.over is not None:
        base = _over(snapshot, table, column)
        run_scores = {key: score / base[key] for key, score in run_scores.items() if key in base}
    return run_scores


def _add_earlier_scores(cell: Cell, earlier: EarlierCell, protocols: Mapping[str, str]) -> None:
    """Add earlier scores of the same data and protocol to a cell.

    Scores on other data belong to another one.  Scores of another protocol are left out if
    there are records here, and marked otherwise.
    """
    if cell.data not in ("", earlier.data):
        return
    difference = ""
    if cell.expected and earlier.protocol not in (UNKNOWN, cell.expected.digest):
        difference = cell.expected.differences(protocols.get(earlier.protocol, ""))
        difference = f"other protocol: {difference or earlier.protocol}"
    if difference and cell.values:
        cell.left_out = difference
        return
    cell.other_protocol = difference
    cell.earlier = len(earlier.values.keys() - cell.values.keys())
    if cell.earlier:
        is_same = not cell.values or cell.protocol == earlier.protocol
        cell.protocol = earlier.protocol if is_same else UNKNOWN
    cell.values = earlier.values | cell.values
    cell.data = earlier.data
    cell.doubted = cell.doubted or (earlier.doubted and cell.earlier > 0)


def _find_reason(cell: Cell, contributing: list[dict[str, Any]], reasons: Iterable[str]) -> str:
    """Why a cell is empty or cannot be compared; empty if neither is so."""
    if not cell.values:
        return "; ".join(filter(None, reasons))
    if any(facts.get("smoke") for facts in contributing):
        return "a smoke run"
    # earlier scores may complete the runs here
    if len(cell.values) < sum(facts["replicates"] for facts in contributing):
        return "; ".join(r for r in reasons if "so far" in r)
    return ""
