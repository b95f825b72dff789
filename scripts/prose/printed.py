"""Numbers that the papers print, the kept scores next to them, and why others have none.

Printed numbers are those of ``conf/published``.  A row of a study lies next to one where its table
names the published table and the row the published row.  ``printed_reasons.yaml`` says why a
printed number is open: it has no kept score, or too few replicates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveInt, ValidationError

from runner.disk import conf_folders
from runner.disk.read_yaml import load_untrusted
from runner.errors import ConfigError, nearest
from runner.report.results import layout_cell
from runner.statistics.paired_tests import MIN_REPLICATES
from runner.statistics.published import Published, load_published
from scripts.prose.fields import MARKER
from scripts.prose.hand_typed import find_hand_typed
from scripts.prose.scores import FOLDER, list_scores, load_scores

REASONS = "printed_reasons.yaml"
OTHER_PAPERS = ("gal_mc_dropout_uci",)  # shown next to our scores, but of none of the documents
# a column that repeats another one of its table, where the table has both
REPEATS = {("gallego_table_1_7", "largest"): "CC_IX"}
ALL = "*"
Key = tuple[str, str, str]  # table, row, column
Names = Annotated[list[str], Field(min_length=1)]


@dataclass
class PrintedCell:
    """A printed number, and the kept scores next to it."""

    table: Published
    row: str
    column: str
    replicates: int = 0  # the most of one row of a study
    verdict: str = "not run"
    judged_by: int = 0  # replicates behind the verdict
    studies: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """True if it has fewer than five replicates, and fewer than print has runs."""
        return self.replicates < min(MIN_REPLICATES, self.table.runs or MIN_REPLICATES)

    def add(self, study: str, replicates: int, verdict: str) -> None:
        """Adds a row; a verdict takes precedence over *not comparable*, then more replicates do."""
        self.studies += [study] if study not in self.studies else []
        self.replicates = max(self.replicates, replicates)
        judged = [not word.startswith("not ") for word in (self.verdict, verdict)]
        if (judged[1], replicates) > (judged[0], self.judged_by):
            self.verdict, self.judged_by = verdict, replicates


class Reason(BaseModel):
    """Why printed numbers are open."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    tables: Names
    rows: Names
    columns: Names
    reason: str
    hours: NonNegativeFloat | None = (
        None  # CPU hours of all that is missing; null: hours do not help
    )

    @property
    def text(self) -> str:
        """The reason without its marks of print and settings."""
        return MARKER.sub(r"\2", " ".join(self.reason.split()))

    def find_open(self, cells: dict[Key, PrintedCell]) -> dict[Key, PrintedCell]:
        """Open cells that it names."""
        return {
            (table, row, column): cell
            for (table, row, column), cell in cells.items()
            if cell.is_open
            and table in self.tables
            and (self.rows == [ALL] or row in self.rows)
            and (self.columns == [ALL] or column in self.columns)
        }

    def find_stale(self, cells: dict[Key, PrintedCell]) -> Iterator[str]:
        """Names in it that none of its open cells has."""
        for table in self.tables:
            own = [key for key in cells if key[0] == table]
            if not own:
                yield table
                continue
            for part, names in ((1, self.rows), (2, self.columns)):
                used = {key[part] for key in own}
                yield from (f"{table}, {name}" for name in names if name not in {ALL, *used})


class Reasons(BaseModel):
    """``printed_reasons.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    printed: dict[str, PositiveInt]  # by paper, how many numbers it prints
    reasons: list[Reason]


def read_reasons(path: Path) -> Reasons:
    """The reasons of a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return Reasons(**load_untrusted(path))
    except (ValidationError, TypeError) as error:
        why = " ".join(str(error).splitlines()[:3])
        raise ConfigError(f"{path.name}: {why}") from None


def list_tables() -> list[Published]:
    """Printed tables of the documents."""
    names = sorted(set(conf_folders.names("published")) - set(OTHER_PAPERS))
    return [load_published(name) for name in names]


def collect_cells(folder: Path = FOLDER) -> dict[Key, PrintedCell]:
    """Every printed number by table, row and column."""
    cells = {
        (table.name, row, column): PrintedCell(table, row, column)
        for table in list_tables()
        for row, values in table.values.items()
        for column in values
        if REPEATS.get((table.name, column)) not in values
    }
    for name in list_scores(folder):
        _add_study(name, folder, cells)
    for (_, row, column), cell in cells.items():
        source = cells.get((cell.table.reprinted_in or "", row, column))
        if source is not None and source.studies:
            cell.add(source.studies[0], source.replicates, source.verdict)
    return cells


def _add_study(name: str, folder: Path, cells: dict[Key, PrintedCell]) -> None:
    study, kept = load_scores(folder, name)
    rows = {row.name: row for row in study.rows}
    tables = {spec.name: spec for spec in study.tables}
    for table, row_name, column in kept.by_place:
        spec, row = tables[table], rows[row_name]
        key = (spec.published or "", row.published_label, spec.published_column or column)
        if key in cells:
            laid = layout_cell(study, spec, row, column, kept, cells[key].table)
            if laid.summary is not None and laid.summary.n:
                cells[key].add(name, laid.summary.n, laid.verdict.word)


def check_reason(reason: Reason, cells: dict[Key, PrintedCell]) -> Iterator[str]:
    """Errors of a reason by itself: an unknown table, a number typed by hand."""
    known = list(dict.fromkeys(table for table, _, _ in cells))
    for table in reason.tables:
        if table not in known:
            yield f"{REASONS}: {table} is no published table{nearest(table, known)}"
    for _, number in find_hand_typed(reason.reason):
        yield f"{REASONS}, {reason.tables[0]}: {number} is typed by hand"


def assign_reasons(
    reasons: list[Reason], cells: dict[Key, PrintedCell]
) -> tuple[list[tuple[Reason, list[PrintedCell]]], list[str]]:
    """Open cells by the first reason that names them, and errors: cells without a reason, reasons
    without a cell."""
    left = {key: cell for key, cell in cells.items() if cell.is_open}
    errors: list[str] = []
    assigned = []
    for reason in reasons:
        errors += check_reason(reason, cells)
        own = reason.find_open(left)
        left = {key: cell for key, cell in left.items() if key not in own}
        errors += [
            f"{REASONS}: {name} needs no reason, or has one above: delete it"
            for name in reason.find_stale(own)
        ]
        if own:
            assigned.append((reason, list(own.values())))
    errors += [
        f"{REASONS}: no reason why {', '.join(key)} has {cell.replicates} replicates"
        for key, cell in left.items()
    ]
    return assigned, errors
