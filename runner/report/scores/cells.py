"""Cells of a study's tables: scores by replicate, their origin, and comparisons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.record.checks import Failures
from runner.record.outcomes import McNemar
from runner.record.scores import ReplicateScores
from runner.statistics.paired_tests import (
    PairedDifference,
    Summary,
    inflate,
    median_iqr,
    median_se,
    summarise,
)
from runner.statistics.published import Published, PublishedNumber, format_mean
from runner.statistics.verdicts import Verdict
from runner.study.protocol import UNKNOWN, Protocol
from runner.study.table_specs import Row, TableSpec

FAILED_CHECK_MARK = "†"  # mark of numbers from runs with failed checks, which are biased
SHORT_MARK = "¶"  # mark of numbers from runs that only need more steps to pass their checks
JOIN = "; "  # between the names of failed checks
OTHER_PROTOCOL_MARK = "§"  # mark of numbers with a protocol other than the study's
CellKey = tuple[str, str, str]  # table, row, column
ExpectedProtocols = dict[CellKey, Protocol]


def mark_failures(failed: Failures) -> str:
    """Mark of failed checks."""
    if not failed:
        return ""
    return SHORT_MARK if all(failed.values()) else FAILED_CHECK_MARK


def list_failures(failed: Failures) -> str:
    """Names of failed checks; those that more steps would pass are marked."""
    return JOIN.join(f"{name} {SHORT_MARK}" if short else name for name, short in failed.items())


def read_failures(names: str) -> Failures:
    """Failed checks of a text by ``list_failures``."""
    each = filter(None, names.split(JOIN))
    return {name.removesuffix(f" {SHORT_MARK}"): SHORT_MARK in name for name in each}


@dataclass
class Cell:
    """A row and column of a table."""

    row: Row
    column: str
    values: ReplicateScores = field(default_factory=dict)  # (seed, replicate) -> score
    data: str = ""
    reason: str = ""  # reason why it is empty or not comparable
    folders: list[Path] = field(default_factory=list)
    earlier: int = 0  # number of values from a file of earlier scores
    failed: Failures = field(default_factory=dict)  # failed checks of its runs
    smoke: bool = False  # True if one of its runs is a smoke run
    protocol: str = UNKNOWN  # hash of the protocol of its scores
    expected: Protocol | None = None  # protocol of its runs, finished or not
    other_protocol: str = ""  # difference of its scores from that protocol; they are not compared
    left_out: str = ""  # difference of excluded earlier scores
    overlap: float = 0.0  # ρ/(1 − ρ) for their correlation ρ, where splits overlap
    number: PublishedNumber | None = None
    bold: bool = False
    verdict: Verdict = field(default_factory=lambda: Verdict("not run"))
    against: PairedDifference | None = None  # ours less the reference row's, replicate by replicate
    # ours against the reference row's on the same test labels, of one replicate each
    by_label: McNemar | None = None

    @property
    def mark(self) -> str:
        """Marks of the number in the cell."""
        return mark_failures(self.failed) + (OTHER_PROTOCOL_MARK if self.other_protocol else "")

    @property
    def failures(self) -> str:
        """Names of its failed checks."""
        return list_failures(self.failed)

    @property
    def is_compared(self) -> bool:
        """True if its difference from the reference row has a spread or a test."""
        pair = self.against
        return pair is not None and (pair.n > 1 or self.by_label is not None)

    def centre(self, spec: TableSpec) -> tuple[float, float | None] | None:
        """Mean and SE, or median and interquartile range, as set by the table; None without runs."""
        if (summary := self.summary) is None:
            return None
        return (
            (summary.mean, summary.se)
            if spec.centre == "mean"
            else median_iqr(self.values.values())
        )

    def format(self, spec: TableSpec, more: int = 0) -> str:
        """``centre`` as text; empty without runs."""
        estimate = self.centre(spec)
        return "" if estimate is None else format_mean(*estimate, spec.digits + more)

    def judged(self, spec: TableSpec) -> Summary | None:
        """Summary with ``mean`` and ``se`` of the centre used in the table."""
        summary = self.summary
        if summary is None or spec.centre == "mean":
            return summary
        median, _ = median_iqr(self.values.values())
        se = inflate(median_se(self.values.values()), summary.n, self.overlap)
        return replace(summary, mean=median, se=se)

    @property
    def summary(self) -> Summary | None:
        """Mean and SE, corrected for overlapping splits; None without runs."""
        if not self.values:
            return None
        summary = summarise(self.values.values())
        return replace(summary, se=inflate(summary.se, summary.n, self.overlap))


@dataclass
class TableLayout:
    """A table with its cells, row by row."""

    spec: TableSpec
    published: Published | None
    columns: list[str]
    rows: list[tuple[Row, list[Cell]]]
    data: list[str]  # names of the data that the scores were obtained on

    @property
    def cells(self) -> list[Cell]:
        """All cells, row by row."""
        return [cell for _, cells in self.rows for cell in cells]

    @property
    def column_name(self) -> str:
        """Heading of the column names."""
        columns = self.spec.columns
        return columns.split(".")[-1] if isinstance(columns, str) else "column"

    @property
    def has_bold(self) -> bool:
        """True if a cell is in bold type."""
        return any(cell.bold for cell in self.cells)

    @property
    def has_presets(self) -> bool:
        """True if a row has a preset of its settings."""
        return any(row.preset for row, _ in self.rows)

    @property
    def is_compared(self) -> bool:
        """True if a cell is compared with the reference row's."""
        return any(cell.is_compared for cell in self.cells)

    @property
    def smoke(self) -> bool:
        """True if a score comes from a smoke run."""
        return any(cell.smoke for cell in self.cells)

    @property
    def splits_overlap(self) -> bool:
        """True if standard errors and tests are corrected for overlapping splits."""
        return any(cell.overlap for cell in self.cells)

    @property
    def replicates(self) -> list[int]:
        """Numbers of replicates of the scores, in increasing order."""
        return sorted({s.n for cell in self.cells if (s := cell.summary) and s.n})


def list_cells(tables: Iterable[TableLayout]) -> list[Cell]:
    """Cells of several tables."""
    return [cell for laid in tables for cell in laid.cells]
