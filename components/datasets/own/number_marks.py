"""Marks of fractions and of thousands in columns of texts, and texts with two readings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from components.errors import ConfigMismatchError

Decimal = Literal[".", ","]
Thousands = Literal[".", ",", " ", "'"]
Cells = Sequence[str | None]
COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d+(?:[eE][+-]?\d+)?")
# a fraction, or more than a thousand
THOUSANDS_NUMBER = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
GROUPED_NUMBER = re.compile(r"[+-]?\d{1,3}(?:[ .,'’\u00a0\u202f]\d{3})+(?:[.,]\d+)?")
GROUP_MARKS: dict[Thousands, str] = {" ": " \u00a0\u202f", "'": "'’", ".": ".", ",": ","}


def is_number(text: str) -> bool:
    """True for a number with any marks."""
    patterns = (WHOLE, COMMA_NUMBER, POINT_NUMBER, GROUPED_NUMBER)
    return any(pattern.fullmatch(text.strip()) for pattern in patterns)


def drop_thousands(text: str, thousands: Thousands) -> str:
    """A number without its marks of thousands; another text as it is."""
    marks = GROUP_MARKS[thousands]
    groups = rf"[+-]?\d{{1,3}}(?:[{marks}]\d{{3}})+(?:[^\d{marks}]\d*)?"
    return re.sub(f"[{marks}]", "", text) if re.fullmatch(groups, text) else text


def find_decimal_mark(
    file: Path, cells: Mapping[str, Cells], delimiter: str, thousands: Thousands | None
) -> tuple[Decimal | None, str]:
    """Mark of the fractions in columns of numbers, and words for a mark that is a guess.

    None: no column has fractions.  Three digits after the mark are thousands as well, as in 1,234
    or 1.234, unless another number shows that the mark is one of fractions.  A point is read as
    such where commas separate the cells and every number of the column has it.

    Raises:
        ConfigMismatchError: columns have different marks, or all numbers have two readings.
    """
    if thousands in (".", ","):
        return "," if thousands == "." else ".", ""
    clear: dict[Decimal, str] = {}
    default: dict[Decimal, str] = {}
    unclear: dict[Decimal, tuple[str, str]] = {}
    patterns: dict[Decimal, re.Pattern[str]] = {",": COMMA_NUMBER, ".": POINT_NUMBER}
    for name, column in cells.items():
        texts = [
            text if thousands is None else drop_thousands(text, thousands)
            for text in column
            if text is not None
        ]
        for mark, pattern in patterns.items():
            marked = [text for text in texts if mark in text]
            whole = [text for text in texts if WHOLE.fullmatch(text)]
            if not marked or not all(pattern.fullmatch(text) for text in marked):
                continue
            if len(marked) + len(whole) < len(texts):
                continue
            fractions = [text for text in marked if not THOUSANDS_NUMBER.fullmatch(text)]
            if fractions or any(len(text.strip("+-")) > 3 for text in whole):
                clear.setdefault(mark, f"{name} holds {(fractions or marked)[0]}")
            elif mark == "." and delimiter in (",", "") and not whole:
                default.setdefault(mark, f"{name} holds {marked[0]}")
            else:
                unclear.setdefault(mark, (name, marked[0]))
    choice = "or name columns that are not used in dataset.exclude"
    fractions_by_mark = default | clear
    if len(fractions_by_mark) > 1:
        columns = ", ".join(fractions_by_mark[mark] for mark in patterns)
        raise ConfigMismatchError(f"{file}: {columns}; set dataset.decimal to ',' or '.', {choice}")
    if unclear and not fractions_by_mark:
        mark, (name, text) = next(iter(unclear.items()))
        raise ConfigMismatchError(
            f"{file}: {name} holds {text}, {text.replace(mark, '')} in thousands or "
            f"{text.replace(mark, '.')} as a fraction; set dataset.thousands='{mark}' or "
            f"dataset.decimal='{mark}', {choice}"
        )
    if "," in clear:
        return ",", "comma"
    if clear or not default:
        return next(iter(clear), None), ""
    # programs with decimal commas seldom separate cells by commas
    guess = f"point ({default['.']}; of thousands set dataset.thousands='.')"
    return ".", "" if delimiter else guess
