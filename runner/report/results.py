"""Results of a study's runs.

They are scores by replicate for every cell of its tables, and why a cell is empty.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runner.record.checks import failed_checks
from runner.record.lines import by_replicate, readable_lines
from runner.record.outcomes import McNemar, compare_outcomes
from runner.report.distances import distances
from runner.report.earlier_scores import EarlierScores
from runner.statistics.paired_tests import (
    PairedDifference,
    Summary,
    Verdict,
    best,
    compare,
    holm,
    judge,
    median_iqr,
    summarise,
)
from runner.statistics.published import Published, PublishedNumber, format_mean, load_published
from runner.study.definition import DISTANCES, POOLED_KEY, Row, StudyDefinition, TableSpec
from runner.study.snapshot import FrozenRun, Snapshot

STEP_TIME = "milliseconds_per_step"  # a metric that is read from the times in the record
LATE_METRIC_PREFIX = (
    "late/"  # before a metric: its mean over the evaluations of the second half of the steps
)
ESS_RATE = "ess_per_second"  # ess over the time of all steps, burn-in included


@dataclass
class Cell:
    """One row and column of a table."""

    row: Row
    column: str
    values: dict[tuple[int, int], float] = field(default_factory=dict)  # (seed, replicate) -> score
    data: str = ""
    reason: str = ""  # why it is empty, or cannot be compared
    folders: list[Path] = field(default_factory=list)
    earlier: int = 0  # values that a file of earlier scores gave
    doubted: bool = False  # a run behind it failed checks
    number: PublishedNumber | None = None
    bold: bool = False
    verdict: Verdict = field(default_factory=lambda: Verdict("not run"))
    against: PairedDifference | None = None  # ours less the reference row's, replicate by replicate
    # ours against the reference row's on the same test labels, of one replicate each
    by_label: McNemar | None = None

    def centre(self, spec: TableSpec) -> tuple[float, float | None] | None:
        """Mean and SE, or median and interquartile range, as the table has it; None: not run."""
        if (summary := self.summary) is None:
            return None
        return (
            (summary.mean, summary.se)
            if spec.centre == "mean"
            else median_iqr(self.values.values())
        )

    def format(self, spec: TableSpec, more: int = 0) -> str:
        """``centre`` in words; empty: not run."""
        estimate = self.centre(spec)
        return "" if estimate is None else format_mean(*estimate, spec.digits + more)

    @property
    def summary(self) -> Summary | None:
        """Mean and SE; None: not run."""
        return summarise(self.values.values()) if self.values else None


@dataclass
class TableLayout:
    """A table with its cells, row by row."""

    spec: TableSpec
    published: Published | None
    columns: list[str]
    rows: list[tuple[Row, list[Cell]]]
    data: list[str]  # names of the data that the scores were obtained on


def step_times(folder: Path) -> dict[int, float]:
    """Median milliseconds of a step by replicate, from the times of recorded training lines (an
    evaluation or a checkpoint between two lines does not move a median)."""
    times: dict[int, list[float]] = {}
    last: dict[int, tuple[int, float]] = {}
    for line in readable_lines(folder):
        if line["phase"] == "train":
            r = line["replicate"]
            step, seconds = last.get(r, (0, -1.0))
            if step > 1 and line["step"] > step:  # the first step also pays for one-time work
                times.setdefault(r, []).append(
                    1000 * (line["time"] - seconds) / (line["step"] - step)
                )
            last[r] = (line["step"], line["time"])
    return {r: statistics.median(t) for r, t in times.items()}


def late_means(folder: Path, metric: str) -> dict[int, float]:
    """Mean of a metric over the evaluations of the second half of the steps, by replicate."""
    lines = [
        line
        for line in readable_lines(folder)
        if line["phase"] != "train" and metric in line["metrics"]
    ]
    half = max((line["step"] for line in lines), default=0) / 2
    # by step: the last one is evaluated again when a replicate ends
    series: dict[int, dict[int, float]] = {}
    for line in lines:
        for r, value in by_replicate(line, metric):
            if line["step"] > half:
                series.setdefault(r, {})[line["step"]] = value
    return {r: statistics.fmean(values.values()) for r, values in series.items()}


def _has_ended(facts: dict[str, Any]) -> bool:
    """True if a run came to its end; if its scores are not finite, it has diverged there."""
    return facts["state"] == "done" or (facts["state"] == "diverged" and bool(facts["result"]))


def _result(result: dict[str, list[float]], metric: str) -> list[float]:
    """Scores of a metric by replicate.

    If a record has no median over the states, it is taken over the scores of each state.
    """
    if metric == "nmse_median" and metric not in result:
        by_state = [values for name, values in result.items() if name.startswith("nmse/")]
        return [statistics.median(each) for each in zip(*by_state, strict=True)]
    return result.get(metric, [])


def scores(facts: dict[str, Any], folder: Path, metric: str) -> dict[tuple[int, int], float]:
    """Scores by (seed, replicate): all of a done run's, the finished replicates' of another."""
    seed = facts["seed"]
    if metric == STEP_TIME:
        seconds = step_times(folder) if facts["state"] == "done" else {}
        return {(seed, r): t for r, t in seconds.items()}
    if metric.startswith(LATE_METRIC_PREFIX):
        means = (
            late_means(folder, metric.removeprefix(LATE_METRIC_PREFIX))
            if facts["state"] == "done"
            else {}
        )
        return {(seed, r): mean for r, mean in means.items()}
    if metric == ESS_RATE:
        if facts["state"] != "done" or "ess" not in facts["result"]:
            return {}
        steps = max((line["step"] for line in readable_lines(folder)), default=0)
        times = step_times(folder)
        if facts.get("vectorised") and times:  # a step is shared by all replicates
            times = dict.fromkeys(range(facts["replicates"]), times[0] / facts["replicates"])
        return {(seed, r): 1000 * facts["result"]["ess"][r] / (t * steps) for r, t in times.items()}
    if _has_ended(facts):
        return dict(
            zip(
                ((seed, r) for r in range(facts["replicates"])),
                _result(facts["result"], metric),
                strict=False,
            )
        )
    finished = {} if facts.get("vectorised") else facts.get("finished", {})
    return {(seed, int(r)): s[metric] for r, s in finished.items() if metric in s}


def _missing(snapshot: Snapshot, run: FrozenRun, facts: dict[str, Any] | None, metric: str) -> str:
    if run.refused:
        return run.refused
    if facts is None:
        return ""
    if facts["state"] == "done":
        message = f"no {metric}: it or the row {snapshot.study.gold} has no predictions (keep_predictions=true, fresh=true)"
        return message if metric in DISTANCES else f"its result has no {metric}"
    return f"{facts['state']}: {facts['error']}" if facts.get("error") else facts["state"]


def _belongs(run: FrozenRun, table: TableSpec, row: str, column: str) -> bool:
    """True if a run's scores belong to this row and column."""
    return run.row == row and (
        isinstance(table.columns, dict) or str(run.cell.get(table.columns)) == column
    )


def _metric(table: TableSpec, row: Row, column: str) -> str:
    """Name of a cell's score in its run's result."""
    metric = table.column_metric(column)
    return metric if row.part is None else f"{metric}/{row.part}"


def _over(snapshot: Snapshot, table: TableSpec, column: str) -> dict[tuple[int, int], float]:
    """Scores by which a column's scores are divided."""
    divisors: dict[tuple[int, int], float] = {}
    metric = next(
        (_metric(table, row, column) for row in snapshot.study.rows if row.name == table.over), ""
    )
    for run in snapshot.runs:
        if (
            table.over is not None
            and _belongs(run, table, table.over, column)
            and (facts := snapshot.facts(run))
        ):
            divisors |= scores(facts, snapshot.folder(run), metric)
    return divisors


def _cell(
    snapshot: Snapshot | None,
    study: StudyDefinition,
    table: TableSpec,
    row: Row,
    column: str,
    earlier: EarlierScores,
) -> Cell:
    """Gathers one cell from all runs that belong to it, and from earlier scores."""
    cell = Cell(row, column)
    metric = _metric(table, row, column)
    reasons: dict[str, None] = {}
    smoke = False
    n_requested = 0  # replicates requested, over all runs of the cell that have begun
    for run in snapshot.runs if snapshot else []:
        if not _belongs(run, table, row.name, column):
            continue
        facts = snapshot.facts(run) if snapshot else None
        run_scores = {}
        if snapshot and facts:
            is_distance = metric in DISTANCES
            run_scores = (
                distances(snapshot, run, facts, metric)
                if is_distance
                else scores(facts, snapshot.folder(run), metric)
            )
        if snapshot and run_scores and table.over is not None:
            base = _over(snapshot, table, column)
            run_scores = {
                key: score / base[key] for key, score in run_scores.items() if key in base
            }
        if snapshot and (facts is None or not run_scores):
            reasons[_missing(snapshot, run, facts, metric)] = None
        if facts is not None and run_scores:
            cell.values |= run_scores
            cell.data = facts["data"]
            cell.folders.append(snapshot.folder(run)) if snapshot else None
            smoke = smoke or facts.get("smoke", False)
            n_requested += facts["replicates"]
            cell.doubted = cell.doubted or bool(failed_checks(facts))
            if not _has_ended(facts):
                reasons[f"{len(run_scores)} of {facts['replicates']} replicates so far"] = None
    earlier_cell = earlier.get((table.name, row.name, column))
    # scores on other data belong to another cell
    if earlier_cell is not None and cell.data in ("", earlier_cell.data):
        cell.earlier = len(earlier_cell.values.keys() - cell.values.keys())
        cell.values = earlier_cell.values | cell.values
        cell.data = earlier_cell.data
        cell.doubted = cell.doubted or (earlier_cell.doubted and cell.earlier > 0)
    has_no_runs = not n_requested and not any(reasons)  # no run here has a result
    if earlier_cell is not None and has_no_runs:
        cell.reason = earlier_cell.why
    elif not cell.values:
        cell.reason = "; ".join(r for r in reasons if r)
    elif smoke:
        cell.reason = "a smoke run"
    elif len(cell.values) < n_requested:  # earlier scores may complete the runs here
        cell.reason = "; ".join(r for r in reasons if "so far" in r)
    return cell


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
        reason = table.not_comparable or published.not_comparable or reason
    cell.verdict = judge(cell.number, cell.summary, table.column_direction(cell.column), reason)


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


def _compare(cells: dict[str, Cell], reference: Cell, table: TableSpec, column: str) -> None:
    """Compare the cells of a column with the reference row's cell."""
    better = table.column_direction(column)
    metric = table.column_metric(column)
    others = {name: cell for name, cell in cells.items() if cell.values and cell is not reference}
    pairs = {name: compare(cell.values, reference.values, better) for name, cell in others.items()}
    for name, pair in holm(pairs).items():
        others[name].against = pair
        others[name].by_label = _test_by_label(others[name], reference, metric)


def layout_table(
    study: StudyDefinition, snapshot: Snapshot | None, earlier: EarlierScores | None = None
) -> list[TableLayout]:
    """Every table of a study: cells with verdicts, bold type by column, and comparisons with the
    reference row."""
    laid = []
    for table in study.tables:
        published = load_published(table.published) if table.published else None
        columns = study.columns(table)
        rows = [
            (row, [_cell(snapshot, study, table, row, column, earlier or {}) for column in columns])
            for row in study.rows
            if table.rows is None or row.name in table.rows
        ]
        for i, column in enumerate(columns):
            cells = {row.name: line[i] for row, line in rows}
            for cell in cells.values():
                _set_verdict(cell, published, table)
            scored = {name: c.values for name, c in cells.items() if c.values}
            better = table.column_direction(column)
            same_data = len({cells[name].data for name in scored}) == 1
            for name in best(scored, better) if same_data else ():
                cells[name].bold = True
            reference = cells.get(study.reference or "")
            if reference is not None and reference.values:
                _compare(cells, reference, table, column)
        data = list(dict.fromkeys(c.data for _, line in rows for c in line if c.data))
        laid.append(TableLayout(table, published, columns, rows, data))
    return laid


def restrict_to_kept_rows(laid: TableLayout, rows: list[str]) -> TableLayout:
    """The table with the rows that it had when its scores were kept and those that have scores:
    others came into the study since, or are of no use in this table, and were never run."""
    table_rows = [
        (row, cells) for row, cells in laid.rows if row.name in rows or any(c.values for c in cells)
    ]
    return replace(laid, rows=table_rows)


def describe_replicates(study: StudyDefinition, replicates: list[int]) -> str:
    """How replicates came about, in words."""
    counts = " or ".join(str(n) for n in sorted(set(replicates)))
    seeds = study.grid.get(POOLED_KEY)
    return f"{counts} a run" + (f", seeds {', '.join(map(str, seeds))} pooled" if seeds else "")
