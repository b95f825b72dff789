"""Columns of a table and their conversion to inputs, so that new rows can be converted in the same
way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from components.problems.date_columns import date_values

ColumnType = Literal["numbers", "true or false", "texts", "dates"]
MISSING = "missing"  # text of a missing value, and name of its indicator


@dataclass(frozen=True)
class InputColumn:
    """A column of inputs: one number, an indicator for each of its texts except the first, or the
    numbers of a date; with an indicator of missing values if the training rows had some."""

    name: str
    type: ColumnType = "numbers"
    levels: tuple[str, ...] = ()  # texts in order; the first has no indicator
    date_format: str = ""  # of datetime.strptime
    parts: tuple[str, ...] = ()  # parts of a date, one input each
    # inputs for a missing value, and 1 if there is an indicator; NaN: stored as missing; None means an
    # error
    fill: tuple[float, ...] | None = None

    @property
    def n_inputs(self) -> int:
        return len(self.fill or self.levels[1:] or self.parts) or int(not self.levels)

    @property
    def input_names(self) -> list[str]:
        names = [f"{self.name} {part}" for part in self.levels[1:] or self.parts]
        names = names or [self.name] * (not self.levels)
        return [*names, f"{self.name} {MISSING}"][: self.n_inputs]

    def encode(self, cell: str, number: Callable[[str], float | None]) -> list[float] | None:
        """Inputs for a nonempty cell; None if the column does not have such a value."""
        values: list[float] | None = None
        if self.levels:
            values = [float(cell == level) for level in self.levels[1:]]
            values = values if cell in self.levels else None
        elif self.parts:
            values = date_values(cell, self.date_format, self.parts)
        elif (value := number(cell)) is not None:
            values = [value]
        return values if values is None else [*values, 0.0][: self.n_inputs]


@dataclass(frozen=True)
class TimeColumn:
    """Column of the dates of a series."""

    name: str
    date_format: str | None = None  # None means ISO 8601


@dataclass(frozen=True)
class InputColumns:
    """Columns in order, and the standardisation of the D inputs.

    x = (raw − mean) / scale, in float64, then in the dtype of the problem
    """

    columns: tuple[InputColumn, ...]
    mean: Tensor | None = None  # [D]; None if inputs are in the units of the columns
    scale: Tensor | None = None  # [D]
    # decimal mark in a text file; None means a point, and no fractions in the training rows
    decimal: Literal[".", ","] | None = "."
    missing: tuple[str, ...] = field(default=("",))  # texts of a cell without a value
    time: TimeColumn | None = None  # of a series; None if times have no dates

    @classmethod
    def numbered(
        cls, n_inputs: int, mean: Tensor | None = None, scale: Tensor | None = None
    ) -> InputColumns:
        """Columns x1 … xD of numbers."""
        names = [f"x{j + 1}" for j in range(n_inputs)]
        return cls.named(names, mean, scale)

    @classmethod
    def named(
        cls, names: Sequence[str], mean: Tensor | None = None, scale: Tensor | None = None
    ) -> InputColumns:
        """Columns of numbers."""
        return cls(tuple(InputColumn(name) for name in names), _to_cpu(mean), _to_cpu(scale))

    @property
    def n_inputs(self) -> int:
        """D."""
        return sum(column.n_inputs for column in self.columns)

    @property
    def input_names(self) -> list[str]:
        return [name for column in self.columns for name in column.input_names]

    def convert(self, raw: Tensor) -> Tensor:
        """Inputs [B, D] from numbers and indicators [B, D] in the units of the columns."""
        return raw if self.mean is None or self.scale is None else (raw - self.mean) / self.scale


def _to_cpu(value: Tensor | None) -> Tensor | None:
    return None if value is None else value.detach().cpu()
