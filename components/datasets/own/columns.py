"""Encoding of a user's text columns as numbers; interpretations and bad cells are reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from components.datasets.own.class_labels import MOST_LEVELS
from components.datasets.own.gaps import GapRule
from components.datasets.own.text_table import TRUE_OR_FALSE, TextTable
from components.errors import ConfigMismatchError
from components.problems.date_columns import PARTS, find_date_formats
from components.problems.input_columns import MISSING, InputColumn

Dates = Literal["days", "parts", "texts"]
Array = NDArray[np.float64]


class EncodedColumn(NamedTuple):
    """A column and its inputs [N, k]."""

    column: InputColumn
    values: Array

    @property
    def taken_for(self) -> str:
        """Description of the column's interpretation."""
        parts = f" ({', '.join(self.column.parts)})" if self.column.parts else ""
        levels = f"{len(self.column.levels)} " if self.column.levels else ""
        return f"{levels}{self.column.type}{parts}"


@dataclass(frozen=True)
class ColumnRules:
    """Dataset keys for input columns, and the training rows."""

    kept: NDArray[np.int64]
    gaps: GapRule = "error"
    dates: Dates | None = None
    indicators: list[Array] = field(default_factory=list)  # gap indicators of the columns so far

    def add_indicator(self, gaps: Array) -> bool:
        """True if training rows have gaps that differ from an earlier column's: equal indicators
        would be collinear."""
        learnt = gaps[self.kept]
        is_new = learnt.any() and not any((learnt == other).all() for other in self.indicators)
        self.indicators.append(learnt)
        return bool(is_new)


def encode(table: TextTable, name: str, rules: ColumnRules) -> EncodedColumn:
    """Encode an input column as numbers, dates, or indicators of its texts.

    The alphabetically first text is the reference level and has no input, because with all levels
    and an intercept the inputs would be collinear.  A non-numeric cell is an error, not a text, in
    a column in which nine in ten cells are numbers, if it is the only text among ten distinct
    values, or only in the first row.  With ``gaps: impute`` a gap gets the medians of the training
    rows and an indicator; among texts it becomes the text "missing", or the most frequent one if no
    training row has a gap.

    Raises:
        ConfigMismatchError: no training row has a value, a cell among numbers is not a number,
            there are too many distinct texts, or dates are ambiguous or lack ``dates``."""
    cells = table.column(name, "inputs")
    texts = [cell for cell in cells if cell is not None]
    learnt = Counter(filter(None, (cells[row] for row in rules.kept)))
    if not learnt:
        raise ConfigMismatchError(
            f"{table.file}: {name} has no value in the training rows; add it to dataset.exclude"
        )
    numbers = {text: table.number(text) for text in {*texts}}
    column = _find_type(table, name, texts, numbers, rules)
    gaps = np.array([cell is None for cell in cells])
    is_new = rules.gaps == "impute" and rules.add_indicator(gaps)
    if column.levels and is_new:
        column = replace(column, levels=(*(t for t in column.levels if t != MISSING), MISSING))
    values = _to_values(column, cells, numbers)
    if len(column.parts) > 1:
        column, values = _select_parts(column, values, rules.kept)
    usual = MISSING if is_new else learnt.most_common(1)[0][0]
    return _fill_gaps(column, values, gaps, rules, usual)


def _fill_gaps(
    column: InputColumn, values: Array, gaps: Array, rules: ColumnRules, usual: str
) -> EncodedColumn:
    """A column with its gaps filled, among texts with the ``usual`` one."""
    if rules.gaps not in ("impute", "keep"):
        return EncodedColumn(column, values)
    fill = np.full(values.shape[1], np.nan)
    if rules.gaps == "impute" and column.levels:
        fill = np.array(column.encode(usual, float))
    elif rules.gaps == "impute":
        fill = np.append(np.nanmedian(values[rules.kept], 0), [1.0] * (usual == MISSING))
    values = np.pad(values, ((0, 0), (0, len(fill) - values.shape[1])))
    values[gaps] = fill
    return EncodedColumn(replace(column, fill=tuple(fill.tolist())), values)


def _to_values(
    column: InputColumn, cells: Sequence[str | None], numbers: Mapping[str, float | None]
) -> Array:
    """Inputs of the cells [N, k], NaN for gaps."""
    k = column.n_inputs
    rows: Sequence[object] = [numbers.get(cell or MISSING) for cell in cells]
    if column.levels or column.parts:
        rows = [column.encode(cell or MISSING, numbers.get) or [np.nan] * k for cell in cells]
    values = np.array(rows, dtype=np.float64).reshape(len(cells), k)
    values[[cell is None for cell in cells]] = np.nan
    return values


def _select_parts(column: InputColumn, values: Array, kept: NDArray[np.int64]) -> EncodedColumn:
    """Parts of dates that vary in the training rows, or the first part."""
    varied = np.nanmin(values[kept], 0) < np.nanmax(values[kept], 0)
    varied[0] |= not varied.any()
    parts = tuple(np.array(PARTS)[varied].tolist())
    return EncodedColumn(replace(column, parts=parts), values[:, varied])


def _find_type(
    table: TextTable,
    name: str,
    texts: Sequence[str],
    numbers: Mapping[str, float | None],
    rules: ColumnRules,
) -> InputColumn:
    """Type of a column, and its numbers.

    Raises ConfigMismatchError for mixed types."""
    bad = [text for text in texts if numbers[text] is None]
    if not bad:
        words = {text.lower() for text in texts}
        return InputColumn(name, "true or false" if words <= set(TRUE_OR_FALSE) else "numbers")
    place = table.where(table.cells[name].index(bad[0]))
    if rules.dates != "texts" and (forms := find_date_formats({*texts})):
        if len(forms) > 1 or rules.dates is None:
            remedy = "set dataset.dates=days (since 1970), parts (year, month, weekday) or texts"
            if len(forms) > 1:
                remedy = "which is ambiguous: write 2011-01-31, set dataset.dates=texts"
            raise ConfigMismatchError(
                f"{place}: {name} is {bad[0]!r}, a date; {remedy}, or add the column to dataset.exclude"
            )
        return InputColumn(
            name, "dates", (), forms[0], ("days",) if rules.dates == "days" else PARTS
        )
    _check_texts(table, name, texts, bad)
    return InputColumn(name, "texts", tuple(sorted({*texts})))


def _check_texts(table: TextTable, name: str, texts: Sequence[str], bad: Sequence[str]) -> None:
    """Raise ConfigMismatchError for a column of numbers with mistakes (``bad``) or with too many
    texts.
    """
    distinct = {*texts}
    few = 10 * len(bad) <= len(texts) or 10 * len({*bad}) <= len(distinct)
    is_unit = bad == texts[:1] and len(texts) > 2
    if few or is_unit or all(map(table.hint, bad)):
        others = ", unlike the others" * (len(bad) < len(texts))
        raise ConfigMismatchError(
            f"{table.where(table.cells[name].index(bad[0]))}: {name} is {bad[0]!r}, not a "
            f"number{others}; correct it, add it to dataset.missing, or add the column to "
            f"dataset.exclude{table.hint(bad[0])}"
        )
    if len(distinct) > MOST_LEVELS:
        raise ConfigMismatchError(
            f"dataset.inputs: {name} has {len(distinct)} distinct texts, but at most {MOST_LEVELS} "
            "can become inputs; add it to dataset.exclude, or convert it to numbers"
        )


def check_gaps(table: TextTable, name: str, gaps: GapRule) -> None:
    """Raise ConfigMismatchError if cells of an input column are missing and gaps are not
    allowed."""
    cells = table.column(name, "inputs")
    if gaps == "error" and None in cells and any(cells):
        more = f" (and {cells.count(None) - 1:,} more)" * (cells.count(None) > 1)
        raise ConfigMismatchError(
            f"{table.where(cells.index(None))}: {name} is missing{more}; set dataset.gaps=impute "
            "or drop, fill it, or add the column to dataset.exclude"
        )
