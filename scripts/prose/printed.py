"""Numbers that the papers print, with the kept scores or the reason why there are none.

Printed numbers come from ``conf/published``.  A study's row is compared with a printed row if its
table names the published table and the row names the published row.  ``printed_reasons.yaml`` gives
the reason why a printed number is open: it has no kept score, or too few replicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveInt, ValidationError

from runner.disk import conf_folders
from runner.disk.read_yaml import load_untrusted
from runner.errors import ConfigError, nearest
from runner.report.scores.earlier import PLACE
from runner.statistics.paired_tests import MIN_REPLICATES
from runner.statistics.published import Published, load_published
from scripts.prose.fields import MARKER
from scripts.prose.hand_typed import find_hand_typed
from scripts.prose.scores import FOLDER, list_scores, load_tables

REASONS = "printed_reasons.yaml"
OTHER_PAPERS = ("gal_mc_dropout_uci",)  # shown next to our scores, but not from the documents
# a column that repeats another one of its table, where the table has both
REPEATS = {("gallego_table_1_7", "largest"): "CC_IX"}
ALL = "*"
Names = Annotated[list[str], Field(min_length=1)]
SCORED = [*PLACE, "study", "replicates", "verdict"]
Assigned = list[tuple["Reason", pd.DataFrame]]


class Reason(BaseModel):
    """Reason why printed numbers are open."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    tables: Names
    rows: Names
    columns: Names
    reason: str
    # CPU hours of the missing runs; null: more hours do not help
    hours: NonNegativeFloat | None = None

    @property
    def text(self) -> str:
        """The reason without the marks of printed numbers and settings."""
        return MARKER.sub(r"\2", " ".join(self.reason.split()))

    def select(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Cells that the reason names."""
        named = cells[cells["table"].isin(self.tables)]
        for part, names in (("row", self.rows), ("column", self.columns)):
            named = named if names == [ALL] else named[named[part].isin(names)]
        return named

    def find_stale(self, cells: pd.DataFrame) -> Iterator[str]:
        """Names in the reason that no open cell has."""
        for table in self.tables:
            open_cells = cells[cells["table"] == table]
            if open_cells.empty:
                yield table
                continue
            for part, names in (("row", self.rows), ("column", self.columns)):
                used = {ALL, *open_cells[part]}
                yield from (f"{table}, {name}" for name in names if name not in used)


class Reasons(BaseModel):
    """``printed_reasons.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    printed: dict[str, PositiveInt]  # count of printed numbers by paper
    reasons: list[Reason]


def read_reasons(path: Path) -> Reasons:
    """The reasons of a file.

    Raises:
        ConfigError: the file is not readable or has invalid keys.
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


def collect_cells(folder: Path = FOLDER) -> pd.DataFrame:
    """All printed numbers by table, row and column, with the kept scores.

    Further columns: source, where, enough (replicates), again (the table in which it is printed
    again), replicates (the most of one row of a study), verdict, studies, is_open.
    """
    tables = {table.name: table for table in list_tables()}
    cells = pd.DataFrame(line for table in tables.values() for line in _list_numbers(table))
    lines = (line for name in list_scores(folder) for line in _list_scored(name, folder, tables))
    scored = pd.DataFrame(lines, columns=SCORED)
    first = pick_scores(scored).reset_index().rename(columns={"table": "again"})
    again = cells.merge(first, on=["again", "row", "column"])
    best = pick_scores(pd.concat([scored, again[SCORED]]))
    cells = cells.merge(best, how="left", left_on=PLACE, right_index=True)
    counts = cells["replicates"].fillna(0).astype(int)
    verdicts = cells["verdict"].fillna("not run")
    return cells.assign(replicates=counts, verdict=verdicts, is_open=counts < cells["enough"])


def _list_numbers(table: Published) -> Iterator[dict[str, Any]]:
    """Numbers of a printed table."""
    common = {
        "source": table.source,
        "where": table.where,
        "enough": min(MIN_REPLICATES, table.runs or MIN_REPLICATES),
        "again": table.reprinted_in or "",
    }
    for row, values in table.values.items():
        for column in values:
            if REPEATS.get((table.name, column)) not in values:
                yield {"table": table.name, "row": row, "column": column, **common}


def pick_scores(lines: pd.DataFrame) -> pd.DataFrame:
    """By printed number: the most replicates of a row, its studies, and the verdict of the row with
    the most replicates; any other verdict takes precedence over *not comparable*."""
    is_judged = ~lines["verdict"].astype(str).str.startswith("not ")
    ranked = lines.assign(is_judged=is_judged).sort_values(
        ["is_judged", "replicates"], ascending=False, kind="stable"
    )
    places = lines.groupby(PLACE)
    return pd.DataFrame(
        {
            "verdict": ranked.groupby(PLACE)["verdict"].first(),
            "replicates": places["replicates"].max(),
            "study": places["study"].first(),
            "studies": places["study"].unique(),
        }
    )


def _list_scored(
    name: str, folder: Path, published: Mapping[str, Published]
) -> Iterator[tuple[str, str, str, str, int, str]]:
    """Rows of a study next to printed numbers."""
    for laid in load_tables(folder, name).values():
        numbers = laid.published
        for cell in laid.cells if numbers and numbers.name in published else ():
            if cell.number is not None and cell.summary is not None and cell.summary.n:
                print_column = laid.spec.published_column or cell.column
                place = (numbers.name, cell.row.published_label, print_column)
                yield (*place, name, cell.summary.n, cell.verdict.word)


def check_reason(reason: Reason, tables: list[str]) -> Iterator[str]:
    """Errors within a reason: an unknown table, a number typed by hand."""
    for table in reason.tables:
        if table not in tables:
            yield f"{REASONS}: {table} is not a published table{nearest(table, tables)}"
    for _, number in find_hand_typed(reason.reason):
        yield f"{REASONS}, {reason.tables[0]}: {number} is typed by hand"


def assign_reasons(reasons: list[Reason], cells: pd.DataFrame) -> tuple[Assigned, list[str]]:
    """Open cells by the first reason that names them, and errors: cells without a reason, reasons
    without a cell."""
    pending = cells[cells["is_open"]]
    errors: list[str] = []
    assigned = []
    for reason in reasons:
        errors += check_reason(reason, list(cells["table"].unique()))
        chosen = reason.select(pending)
        pending = pending.drop(chosen.index)
        errors += [
            f"{REASONS}: {name} needs no reason, or has one above: delete it"
            for name in reason.find_stale(chosen)
        ]
        if len(chosen):
            assigned.append((reason, chosen))
    errors += [
        f"{REASONS}: no reason why {', '.join(place)} has {n} replicates"
        for *place, n in pending[[*PLACE, "replicates"]].to_numpy()
    ]
    return assigned, errors
