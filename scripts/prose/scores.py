"""Cells of kept scores by key: ``study:row:column:table``.

An empty part repeats the part of the previous key on the page.  ``*`` and ``?`` in a part match as in
file names, so that one key may name several cells.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from runner.errors import nearest
from runner.report.origin import Kept, Origin, origin_path, read_kept_scores, read_origin
from runner.report.results import layout_table
from runner.report.scores.cells import Cell, TableLayout
from runner.study.definition import StudyDefinition, load_study
from runner.study.table_specs import TableSpec

FOLDER = Path(__file__).parent.parent.parent / "docs" / "results"
ENDING = "_replicates.csv"  # or, compressed, _replicates.csv.gz
PARTS = ("study", "row", "column", "table")
Parts = tuple[str, str, str, str]


class ProseError(ValueError):
    """A mistake in prose: an unknown key, a missing score, a number typed by hand."""


@dataclass(frozen=True)
class KeyedCell:
    """A cell with its table."""

    cell: Cell
    table: TableLayout
    parts: Parts

    @property
    def spec(self) -> TableSpec:
        """Layout of the cell's table."""
        return self.table.spec

    def __str__(self) -> str:
        return ":".join(self.parts)

    def centre_on(self, centre: str) -> KeyedCell:
        """The cell with another centre: mean or median."""
        spec = self.spec.model_copy(update={"centre": centre})
        return replace(self, table=replace(self.table, spec=spec))

    def rename_column(self, column: str) -> KeyedCell:
        """The cell in another column of a table."""
        return replace(self, cell=replace(self.cell, column=column))


def list_scores(folder: Path) -> dict[str, Path]:
    """Files of kept scores by study, in the order of the names."""
    paths = sorted(folder.glob(f"*{ENDING}*"))
    return {path.name.partition(ENDING)[0]: path for path in paths}


@cache
def load_scores(folder: Path, name: str) -> tuple[StudyDefinition, Kept]:
    """Definition and kept scores of a study.

    Raises:
        ProseError: no scores are kept.
    """
    kept = list_scores(folder)
    if name not in kept:
        raise ProseError(f"{name}: no kept scores{nearest(name, list(kept))}")
    scores = kept[name]
    path = origin_path(scores)
    origin = read_origin(path) if path.is_file() else Origin()
    study = load_study(origin.study or name)
    return study, read_kept_scores({name: scores}, study)


@cache
def load_tables(folder: Path, name: str) -> dict[str, TableLayout]:
    """Tables of a study's kept scores by name."""
    study, kept = load_scores(folder, name)
    return {laid.spec.name: laid for laid in layout_table(study, None, kept)}


def clear_caches() -> None:
    """Clear the caches of scores."""
    load_scores.cache_clear()
    load_tables.cache_clear()


def _matching(pattern: str, names: list[str], what: str) -> list[str]:
    """Names that a part of a key matches."""
    wild = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    names_found = [pattern] if pattern in names else [n for n in names if re.fullmatch(wild, n)]
    if not names_found:
        raise ProseError(f"{what} {pattern!r} does not exist{nearest(pattern, names)}")
    return names_found


@dataclass
class Lookup:
    """Cells by key; remembers the last key."""

    folder: Path = FOLDER
    last: list[str] = field(default_factory=lambda: [""] * len(PARTS))
    used: set[str] = field(default_factory=set)  # studies

    def read_key(self, key: str) -> Parts:
        """The four parts of a key."""
        parts = [part.strip() for part in key.split(":")]
        if len(parts) != len(PARTS):
            raise ProseError(f"{key!r}: a key has the form {':'.join(PARTS)}")
        self.last = [part or previous for part, previous in zip(parts, self.last, strict=True)]
        study, row, column, table = self.last
        return study, row, column, table

    def find(self, key: str) -> list[KeyedCell]:
        """All cells with kept scores that a key matches.

        Raises:
            ProseError: no such study, table, row or column, or no kept score.
        """
        return self.find_parts(self.read_key(key))

    def find_parts(self, parts: Parts) -> list[KeyedCell]:
        """Like ``find``, for the parts of a key."""
        name, row, column, table = parts
        tables = load_tables(self.folder, name)
        self.used.add(name)
        cells = []
        for laid in (tables[each] for each in _matching(table, list(tables), f"{name}: table")):
            columns = _matching(column, laid.columns, f"{name}: column")
            rows = _matching(row, [each.name for each, _ in laid.rows], f"{name}: row")
            cells += [
                KeyedCell(cell, laid, (name, cell.row.name, cell.column, laid.spec.name))
                for cell in laid.cells
                if cell.values and cell.row.name in rows and cell.column in columns
            ]
        if not cells:
            raise ProseError(f"{':'.join(parts)}: no kept score")
        return cells

    def find_one(self, key: str) -> KeyedCell:
        """The one cell of a key."""
        cells = self.find(key)
        if len(cells) > 1:
            raise ProseError(f"{key!r} matches {len(cells)} cells; use range, or name one")
        return cells[0]

    def find_partner(self, key: str, first: KeyedCell) -> KeyedCell:
        """The cell of a second key; its ``*`` repeats the part of the first cell."""
        pairs = zip(self.read_key(key), first.parts, strict=True)
        study, row, column, table = (
            first_part if part == "*" else part for part, first_part in pairs
        )
        return self.find_parts((study, row, column, table))[0]

    def find_pairs(self, key: str, other: str) -> list[tuple[KeyedCell, KeyedCell]]:
        """All cells of a key, each with its partner, without pairs of a cell with itself."""
        pairs = [(first, self.find_partner(other, first)) for first in self.find(key)]
        return [pair for pair in pairs if pair[0].parts != pair[1].parts]
