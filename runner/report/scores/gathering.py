"""Assembly of a table's cell from the records of its runs and from earlier scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from runner.record.checks import failed_checks, join_failures
from runner.record.facts import Facts
from runner.record.scores import ReplicateScores, read_scores
from runner.report.origin import CellFacts, Kept, Origin
from runner.report.run_views import RunView
from runner.report.scores.cells import Cell
from runner.report.scores.distances import distances
from runner.report.scores.earlier import WHOLE
from runner.study.definition import StudyDefinition
from runner.study.plan import PlannedRun
from runner.study.protocol import UNKNOWN, protocol_of
from runner.study.snapshot import FrozenRun
from runner.study.table_specs import DISTANCES, Row, TableSpec


def _missing(view: RunView, metric: str, gold: str | None) -> str:
    """Reason why a run has no scores of a metric; empty if it was not started."""
    facts = view.facts
    if not facts:
        return view.run.refused or ""
    if facts["state"] == "done":
        message = f"no {metric}: it or the row {gold} has no predictions (keep_predictions=true, fresh=true)"
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


def gather_cell(
    runs: list[RunView],
    kept: Kept,
    study: StudyDefinition,
    table: TableSpec,
    row: Row,
    column: str,
) -> Cell:
    """Assemble a cell from its runs and from earlier scores."""
    place = table.name, row.name, column
    cell = Cell(row, column, expected=kept.expected.get(place))
    metric = metric_of(table, row, column)
    reasons: dict[str, None] = {}
    contributing = []  # facts of runs with scores
    for view, run_scores in _list_scores(runs, study, table, row, column):
        if not view.run.refused:
            cell.expected = cell.expected or protocol_of(view.run.protocol_parts, metric)
        if run_scores and table.over is not None:
            base = _over(runs, study, table, column)
            run_scores = {
                key: score / base[key] for key, score in run_scores.items() if key in base
            }
        if not run_scores or view.folder is None:
            reasons[_missing(view, metric, study.gold)] = None
            continue
        cell.values |= run_scores
        cell.data = view.facts["data"]
        cell.folders.append(view.folder)
        contributing.append(view.facts)
        n = view.facts["replicates"]
        if view.facts["state"] != "done" and len(run_scores) < n:
            reasons[f"{len(run_scores)} of {n} replicates so far"] = None
    cell.failed = join_failures(*map(failed_checks, contributing))
    cell.smoke = any(facts["smoke"] for facts in contributing)
    if contributing and cell.expected:
        cell.protocol = cell.expected.digest
    facts = kept.facts.get(place, CellFacts(*place))
    if place in kept.by_place:
        _add_earlier_scores(cell, kept.by_place[place], facts, kept.origin)
    cell.overlap = study.overlap(column, cell.data)
    if facts.why and not contributing and not any(reasons):
        cell.reason = facts.why  # no run has a result
    else:
        cell.reason = _find_reason(cell, contributing, reasons)
    return cell


def _list_scores(
    runs: list[RunView], study: StudyDefinition, table: TableSpec, row: Row, column: str
) -> Iterator[tuple[RunView, ReplicateScores]]:
    """Runs of a cell with their scores; none for a run without a record."""
    metric = metric_of(table, row, column)
    for view in runs:
        if not belongs(view.run, table, row.name, column):
            continue
        scores: ReplicateScores = {}
        if view.facts and view.folder and metric in DISTANCES:
            for gold in runs:
                if (gold.run.row, gold.run.cell) == (study.gold, view.run.cell):
                    scores = distances(view, gold, metric)
        elif view.facts and view.folder:
            scores = read_scores(view.facts, view.folder, metric)
        yield view, scores


def _over(
    runs: list[RunView], study: StudyDefinition, table: TableSpec, column: str
) -> ReplicateScores:
    """Scores by which a column's scores are divided."""
    row = next(row for row in study.rows if row.name == table.over)
    divisors: ReplicateScores = {}
    for _, scores in _list_scores(runs, study, table, row, column):
        divisors |= scores
    return divisors


def _add_earlier_scores(cell: Cell, earlier: list[Any], facts: CellFacts, origin: Origin) -> None:
    """Add earlier scores of the same data and protocol to a cell.

    Scores on other data belong to another cell.  Scores of another protocol are excluded if there
    are records, and marked otherwise.
    """
    data = earlier[0].data
    protocol = earlier[0].protocol
    if cell.data not in ("", data):
        return
    difference = ""
    if cell.expected and protocol not in (UNKNOWN, cell.expected.digest):
        difference = cell.expected.differences(origin.protocols.get(protocol, ""))
        difference = f"other protocol: {difference or protocol}"
    if difference and cell.values:
        cell.left_out = difference
        return
    cell.other_protocol = difference
    values = {(e.seed, e.replicate): e.score for e in earlier if e.replicate != WHOLE}
    cell.data = data
    cell.earlier = len(values.keys() - cell.values.keys())
    if cell.earlier:
        is_same = not cell.values or cell.protocol == protocol
        cell.protocol = protocol if is_same else UNKNOWN
        cell.failed = join_failures(cell.failed, facts.failures)
    cell.values = values | cell.values


def _find_reason(cell: Cell, contributing: list[Facts], reasons: Iterable[str]) -> str:
    """Reason why a cell is empty or not comparable, or empty."""
    if not cell.values:
        return "; ".join(filter(None, reasons))
    if any(facts["smoke"] for facts in contributing):
        return "a smoke run"
    # earlier scores may complete the runs
    if len(cell.values) < sum(facts["replicates"] for facts in contributing):
        return "; ".join(r for r in reasons if "so far" in r)
    return ""
