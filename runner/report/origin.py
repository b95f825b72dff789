"""Facts from records that a report stores in addition to the scores.

The file is ``<study>_origin.json``, next to ``<study>_replicates.csv``.

For scores kept without records (``docs/results``) it has the provenance, the failed checks of runs,
reasons for empty cells, and the captions of figures drawn from complete runs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from runner.disk.atomic import write_text
from runner.errors import ConfigError, first_line
from runner.record.checks import Failures
from runner.report.scores.cells import CellKey, ExpectedProtocols, TableLayout, list_cells
from runner.report.scores.earlier import NO_SCORES, read_earlier
from runner.study.definition import StudyDefinition

UNNAMED = "a check without a stored name"


@dataclass(frozen=True)
class CellFacts:
    """Facts of a cell in addition to its scores."""

    table: str
    row: str
    column: str
    doubted: bool = False  # a check failed, and its name was not kept
    why: str = ""
    failed: Failures = field(default_factory=dict)

    @property
    def failures(self) -> Failures:
        """Failed checks of the runs in the cell."""
        return self.failed or ({UNNAMED: False} if self.doubted else {})


@dataclass(frozen=True)
class Origin:
    """Origin of all scores of a file."""

    provenance: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    differs: dict[str, str] = field(default_factory=dict)
    cells: list[CellFacts] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)  # file stem -> caption
    rows: dict[str, list[str]] = field(default_factory=dict)  # table -> its rows
    study: str = ""  # study of the runs, if it differs from the name of the file
    # hash of each protocol among the scores -> its parts in words
    protocols: dict[str, str] = field(default_factory=dict)


def collect_cell_facts(tables: list[TableLayout]) -> list[CellFacts]:
    """Facts of the cells of tables."""
    return [
        CellFacts(laid.spec.name, cell.row.name, cell.column, why=cell.reason, failed=cell.failed)
        for laid in tables
        for cell in laid.cells
        if cell.failed or cell.reason
    ]


def collect_protocols(tables: list[TableLayout], kept: Origin) -> dict[str, str]:
    """Parts of each protocol in the scores of tables, by hash."""
    cells = [cell for cell in list_cells(tables) if cell.values]
    current = {cell.expected.digest: cell.expected.parts for cell in cells if cell.expected}
    protocols = kept.protocols | current
    return {cell.protocol: protocols[cell.protocol] for cell in cells if cell.protocol in protocols}


def write_origin(origin: Origin, path: Path) -> Path:
    """Write JSON with a line for each value, for version control; return the path."""
    values = {key: value for key, value in asdict(origin).items() if value}
    write_text(path, json.dumps(values, ensure_ascii=False, indent=1) + "\n")
    return path


def origin_path(scores: Path) -> Path:
    """Path of the origin next to a file of scores."""
    stem = scores.name.partition(".csv")[0].removesuffix("_replicates")
    return scores.with_name(f"{stem}_origin.json")


@dataclass(frozen=True)
class Kept:
    """Scores of earlier reports with their origin."""

    scores: pd.DataFrame = field(default_factory=lambda: NO_SCORES)  # result of ``read_earlier``
    origin: Origin = field(default_factory=Origin)
    score_files: list[Path] = field(default_factory=list)  # files of scores
    # protocols of the study's own cells without records
    expected: ExpectedProtocols = field(default_factory=dict)

    @cached_property
    def by_place(self) -> dict[CellKey, list[Any]]:
        """Lines of each cell."""
        lines = defaultdict[Any, list[Any]](list)
        for line in self.scores.itertuples():
            lines[line.table, line.row, line.column].append(line)
        return lines

    @cached_property
    def facts(self) -> dict[CellKey, CellFacts]:
        """Facts by cell."""
        return {(cell.table, cell.row, cell.column): cell for cell in self.origin.cells}

    def pictures(self) -> dict[str, tuple[str, Path]]:
        """Figures next to the scores, as ``<study>_<stem>.png``: {stem: (caption, file)}."""
        by_stem = {}
        for path in self.score_files:
            for stem, caption in self.origin.figures.items():
                picture = path.with_name(path.name.partition("replicates.csv")[0] + f"{stem}.png")
                if picture.is_file():
                    by_stem[stem] = (caption, picture)
        return by_stem


def read_kept_scores(files: Mapping[str, Path], study: StudyDefinition) -> Kept:
    """Read files of scores, by displayed name, and the files next to them.

    If two files have the same replicate, the later file takes precedence.

    Raises:
        ConfigError: a file is damaged or belongs to another study.
    """
    paths = list(files.values())
    origins = [read_origin(path) for path in map(origin_path, paths) if path.is_file()]
    return Kept(read_earlier(files, study), _merge(origins), paths)


def _merge(origins: list[Origin]) -> Origin:
    """Merge origins: unique entries of lists, and later entries of mappings first."""
    merged = dict(vars(Origin()))
    for origin in origins:
        for name, value in vars(origin).items():
            if isinstance(value, list):
                merged[name] += [entry for entry in value if entry not in merged[name]]
            else:
                merged[name] = (
                    merged[name] | value if isinstance(value, dict) else merged[name] or value
                )
    return Origin(**merged)


def read_origin(path: Path) -> Origin:
    """Read an origin.

    Raises:
        ConfigError: the file is damaged."""
    try:
        return TypeAdapter(Origin).validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        why = first_line(error)
        raise ConfigError(
            f"--with: {path} cannot be read ({why}); without --with, only the scores are read"
        ) from None
