"""Results of a study's runs.

They are scores by replicate for every cell of its tables, and why a cell is empty.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runner.compose.protocol import UNKNOWN, Protocol, protocol_of
from runner.record.checks import failed_checks
from runner.record.lines import by_replicate, readable_lines
from runner.record.outcomes import McNemar, compare_outcomes
from runner.report.distances import distances
from runner.report.earlier_scores import EarlierCell, EarlierScores
from runner.statistics.paired_tests import (
    PairedDifference,
    Summary,
    Verdict,
    best,
    compare,
    holm,
    inflate,
    judge,
    median_iqr,
    median_se,
    summarise,
)
from runner.statistics.published import Published, PublishedNumber, format_mean, load_published
from runner.study.definition import StudyDefinition
from runner.study.plan import PlannedRun
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.table_specs import DISTANCES, POOLED_KEY, Row, TableSpec

STEP_TIME = "milliseconds_per_step"  # a metric that is read from the times in the record
LATE_METRIC_PREFIX = (
    "late/"  # before a metric: its mean over the evaluations of the second half of the steps
)
OTHER_PROTOCOL_MARK = "§"  # behind a number of another protocol than the study's
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
    smoke: bool = False  # a run behind it is a smoke run
    protocol: str = UNKNOWN  # hash of the protocol of its scores
    expected: Protocol | None = None  # protocol of its runs here, done or not
    other_protocol: str = (
        ""  # how its scores differ from that protocol; they are compared with none
    )
    left_out: str = ""  # how earlier scores differ that are not among them
    overlap: float = 0.0  # test rows over training rows, where splits overlap
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

    def estimate(self, spec: TableSpec) -> tuple[float, float | None]:
        """The centre that the table shows, with its standard error."""
        summary = self.judged(spec)
        return (summary.mean, summary.se) if summary is not None else (math.nan, None)

    def judged(self, spec: TableSpec) -> Summary | None:
        """Summary whose ``mean`` and ``se`` are of the centre that the table shows."""
        summary = self.summary
        if summary is None or spec.centre == "mean":
            return summary
        median, _ = median_iqr(self.values.values())
        se = inflate(median_se(self.values.values()), summary.n, self.overlap)
        return replace(summary, mean=median, se=se)

    @property
    def summary(self) -> Summary | None:
        """Mean and SE, corrected where splits overlap; None: not run."""
        if not self.values:
            return None
        summary = summarise(self.values.values())
        return replace(summary, se=inflate(summary.se, summary.n, self.overlap))


ExpectedProtocols = dict[tuple[str, str, str], Protocol]  # (table, row, column) -> protocol


@dataclass
class TableLayout:
    """A table with its cells, row by row."""

    spec: TableSpec
    published: Published | None
    columns: list[str]
    rows: list[tuple[Row, list[Cell]]]
    data: list[str]  # names of the data that the scores were obtained on

    @property
    def smoke(self) -> bool:
        """True if a score is of a smoke run."""
        return any(cell.smoke for _, cells in self.rows for cell in cells)

    @property
    def splits_overlap(self) -> bool:
        """True if standard errors and tests are corrected for overlapping splits."""
        return any(cell.overlap for _, cells in self.rows for cell in cells)

    @property
    def replicates(self) -> list[int]:
        """Numbers of replicates behind the scores, in increasing order."""
        summaries = (cell.summary for _, cells in self.rows for cell in cells)
        return sorted({summary.n for summary in summaries if summary is not None and summary.n})


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
    if metric in (STEP_TIME, ESS_RATE) or metric.startswith(LATE_METRIC_PREFIX):
        replicate_scores = (
            _recorded_scores(facts, folder, metric) if facts["state"] == "done" else {}
        )
    elif _has_ended(facts):
        values = _result(facts["result"], metric)
        replicate_scores = dict(zip(range(facts["replicates"]), values, strict=False))
    else:
        finished = {} if facts.get("vectorised") else facts.get("finished", {})
        replicate_scores = {int(r): s[metric] for r, s in finished.items() if metric in s}
    return {(seed, r): score for r, score in replicate_scores.items()}


def _recorded_scores(facts: dict[str, Any], folder: Path, metric: str) -> dict[int, float]:
    """Scores of a done run that are read from the lines of its record."""
    if metric.startswith(LATE_METRIC_PREFIX):
        return late_means(folder, metric.removeprefix(LATE_METRIC_PREFIX))
    if metric == STEP_TIME:
        return step_times(folder)
    if "ess" not in facts["result"]:
        return {}
    steps = max((line["step"] for line in readable_lines(folder)), default=0)
    times = step_times(folder)
    if facts.get("vectorised") and times:  # a step is shared by all replicates
        times = dict.fromkeys(range(facts["replicates"]), times[0] / facts["replicates"])
    return {r: 1000 * facts["result"]["ess"][r] / (t * steps) for r, t in times.items()}


def _missing(snapshot: Snapshot, run: FrozenRun, facts: dict[str, Any] | None, metric: str) -> str:
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


@dataclass(frozen=True)
class ScoreSources:
    """Records and earlier scores that cells are gathered from."""

    snapshot: Snapshot | None
    earlier: EarlierScores
    # protocols of the study's cells, where no snapshot tells them
    expected: ExpectedProtocols = field(default_factory=dict)
    # hash of a protocol of earlier scores -> its parts in words
    protocols: Mapping[str, str] = field(default_factory=dict)


def _cell(
    sources: ScoreSources, study: StudyDefinition, table: TableSpec, row: Row, column: str
) -> Cell:
    """Gathers one cell from all runs that belong to it, and from earlier scores."""
    snapshot = sources.snapshot
    place = table.name, row.name, column
    cell = Cell(row, column, expected=sources.expected.get(place))
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
            if not _has_ended(facts):
                reasons[f"{len(run_scores)} of {facts['replicates']} replicates so far"] = None
    cell.doubted = any(failed_checks(facts) for facts in contributing)
    cell.smoke = any(facts.get("smoke") for facts in contributing)
    if contributing and cell.expected:
        cell.protocol = cell.expected.digest
    earlier_cell = sources.earlier.get(place)
    if earlier_cell is not None:
        _add_earlier_scores(cell, earlier_cell, sources.protocols)
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
    earlier: EarlierScores,
    published: Published | None,
) -> Cell:
    """One cell of earlier scores with its verdict; ``published``: the table's."""
    cell = _cell(ScoreSources(None, earlier), study, table, row, column)
    _set_verdict(cell, published, table)
    return cell


def layout_table(
    study: StudyDefinition,
    snapshot: Snapshot | None,
    earlier: EarlierScores | None = None,
    expected: ExpectedProtocols | None = None,
    protocols: Mapping[str, str] | None = None,
) -> list[TableLayout]:
    """Every table of a study: cells with verdicts, bold type by column, and comparisons with the
    reference row.

    ``expected``: protocols of cells that no snapshot tells; ``protocols``: parts of the
    protocols of earlier scores, by hash.
    """
    sources = ScoreSources(snapshot, earlier or {}, expected or {}, protocols or {})
    laid = []
    for table in study.tables:
        published = load_published(table.published) if table.published else None
        columns = study.columns(table)
        rows = [
            (row, [_cell(sources, study, table, row, column) for column in columns])
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
