"""Columns of a table and the inputs that a dataset made of them, so that new rows can be converted
in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

ColumnType = Literal["numbers", "true or false", "texts"]


@dataclass(frozen=True)
class InputColumn:
    """A column of inputs: one number, or an indicator for each of its texts but the first."""

    name: str
    type: ColumnType = "numbers"
    levels: tuple[str, ...] = ()  # the texts, in order; the first has no indicator


@dataclass(frozen=True)
class TimeColumn:
    """Column of the dates of a series."""

    name: str
    date_format: str | None = None  # None: ISO 8601


@dataclass(frozen=True)
class InputColumns:
    """Columns in their order, and the standardisation of the D inputs.

    x = (raw − mean) / scale, in float64, then in the dtype of the problem
    """

    columns: tuple[InputColumn, ...]
    mean: Tensor | None = None  # [D]; None: inputs are in the units of the columns
    scale: Tensor | None = None  # [D]
    # decimal mark of numbers in a text file; None: a point, and the training rows had no fractions
    decimal: Literal[".", ","] | None = "."
    missing: tuple[str, ...] = field(default=("",))  # texts of a cell without a value
    time: TimeColumn | None = None  # of a series; None: its times have no dates

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
        return sum(
            max(len(column.levels) - 1, 0) if column.levels else 1 for column in self.columns
        )

    def convert(self, raw: Tensor) -> Tensor:
        """Inputs [B, D] from numbers and indicators [B, D] in the units of the columns."""
        return raw if self.mean is None or self.scale is None else (raw - self.mean) / self.scale


def _to_cpu(value: Tensor | None) -> Tensor | None:
    return None if value is None else value.detach().cpu()
