"""A series of one's own: columns of a CSV file."""

from __future__ import annotations

import csv
import hashlib
import math
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from pydantic import Field, NonNegativeInt
from torch import Tensor

from components.contracts.problems import Kind
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.figures.sequences.signal import signal
from components.problems.sequence import Sequence
from components.registry import register
from components.trouble import DamagedFile, DataUnavailable, Misfit


@register("dataset", "csv_series")
class CsvSeries(Dataset[Sequence]):
    """Series from the columns of a CSV file whose first line names them, a time a line.

    y_t holds the ``columns`` at time t, NaN where a cell is among the words of ``missing``; the ``truth`` of the signal
    E[y_t | x_t], where there are columns of it, is shown to scores and figures alone.  All R replicates see the same
    observations [R, T, dy].  The name of the data holds the beginning of the file's checksum.

    Raises DataUnavailable (no such file), DamagedFile (empty, or not a table), Misfit (a column that is not there, a cell that
    is no number).

    Source: Shafranovich (2005), RFC 4180."""

    kind: ClassVar[Kind] = "sequence"
    vectorised: ClassVar[bool] = True

    path: str | None
    columns: Annotated[list[str], Field(min_length=1)]
    truth: list[str] | None
    delimiter: Annotated[str, Field(min_length=1, max_length=1)]
    missing: list[str]
    skip: NonNegativeInt
    n_steps: Annotated[int, Field(ge=1)] | None

    def _file(self, data_dir: Path) -> Path:
        """Raises DataUnavailable."""
        if self.path is None:
            raise DataUnavailable("dataset.path: not given; name a CSV file, whole or inside data_dir")
        found = next((p for p in (Path(data_dir) / self.path, Path(self.path)) if p.is_file()), None)
        if found is None:
            raise DataUnavailable(f"dataset.path={self.path}: no such file, neither here nor in {Path(data_dir)}")
        return found

    def identity(self, data_dir: Path, offline: bool) -> str:
        """Its own name, the file's and the beginning of its checksum.

        Raises:
            DataUnavailable: there is no such file."""
        file = self._file(data_dir)
        return f"{self.name}-{file.stem}-{hashlib.sha256(file.read_bytes()).hexdigest()[:8]}"

    def load(self, rng: Rng, setting: Setting) -> Sequence:
        file = self._file(setting.data_dir)
        header, rows = self._read(file)
        seen = self._numbers(file, header, rows, self.columns, "columns")  # [T, dy]
        if self.truth is not None and len(self.truth) != len(self.columns):
            raise Misfit(f"dataset.truth: names {len(self.truth)} columns, dataset.columns {len(self.columns)}")
        truth = None if self.truth is None else self._numbers(file, header, rows, self.truth, "truth")

        def placed(value: Tensor, replicates: int) -> Tensor:
            return value.expand(replicates, -1, -1).to(device=setting.device, dtype=setting.dtype).contiguous()

        return Sequence(
            name=self.identity(setting.data_dir, setting.offline),
            states=None,
            observations=placed(seen, setting.replicates),
            means=None if truth is None else placed(truth, 1),
            system=None,
            state_names=self.columns,
            figures=[signal],
            about={} if truth is None else {"truth": "of the signal: " + ", ".join(self.truth or [])},
        )

    def _read(self, file: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
        """The names of the columns, and the rows that were asked for with the numbers of their lines.

        Raises:
            DamagedFile: it is empty, or no table of that delimiter.
            Misfit: it has too few lines.
        """
        try:
            with file.open(newline="", encoding="utf-8-sig") as text:
                lines = csv.reader(text, delimiter=self.delimiter, strict=True)
                header = [name.strip() for name in next((row for row in lines if row), [])]
                rows = [(lines.line_num, row) for row in lines if row]
        except (UnicodeDecodeError, csv.Error, OSError) as error:
            raise DamagedFile(f"{file}: no CSV file ({error}); replace it") from None
        if not rows:
            lacks = "no line after its names" if header else "nothing"
            raise DamagedFile(f"dataset.path={self.path}: the file is empty, {file} holds {lacks}; name another")
        if ragged := [(line, row) for line, row in rows if len(row) != len(header)]:
            line, row = ragged[0]
            raise DamagedFile(
                f"{file}, line {line}: {len(row)} cells under {len(header)} names; mend it, or dataset.delimiter"
            )
        rows = rows[self.skip :][: self.n_steps]
        if not rows or (self.n_steps is not None and len(rows) < self.n_steps):
            raise Misfit(f"dataset.n_steps={self.n_steps}: {file} has {len(rows)} lines after dataset.skip={self.skip}")
        return header, rows

    def _numbers(
        self, file: Path, header: list[str], rows: list[tuple[int, list[str]]], names: list[str], key: str
    ) -> Tensor:
        """Columns by name [T, …], NaN where missing.

        Raises:
            Misfit: a column is not there, or a cell is no number.
        """
        for name in names:
            if name not in header:
                raise Misfit(f"dataset.{key}={name}: {file} has no such column; there are {', '.join(header)}")
        places = [header.index(name) for name in names]

        def number(line: int, cell: str, name: str) -> float:
            if cell.strip() in self.missing:
                return math.nan
            try:
                if not math.isinf(value := float(cell)):
                    return value
                raise ValueError
            except ValueError:
                raise Misfit(
                    f"{file}, line {line}: {name} is {cell!r}, no number; mend it, or add it to dataset.missing"
                ) from None

        table = [[number(line, row[j], name) for j, name in zip(places, names, strict=True)] for line, row in rows]
        return torch.tensor(table, dtype=torch.float64)
