"""Decimal and thousands marks in text columns, and ambiguous numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import filterfalse
from pathlib import Path
from typing import Literal

from components.errors import ConfigMismatchError

Decimal = Literal[".", ","]
Cells = Sequence[str | None]
FRACTION = re.compile(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d+(?:[eE][+-]?\d+)?")
UNGROUPED = re.compile(r"[+-]?\d{4}")
# a fraction, or a grouped number above a thousand
THOUSANDS_NUMBER = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
GROUPED_NUMBER = re.compile(r"[+-]?\d{1,3}(?:[ .,'’\u00a0\u202f]\d{3})+(?:[.,]\d+)?")


def is_number(text: str) -> bool:
    """True for a number with any marks."""
    return any(form.fullmatch(text.strip()) for form in (WHOLE, FRACTION, GROUPED_NUMBER))


def parse_number(text: str, decimal: Decimal | None, grouped: bool) -> float | None:
    """Parse a finite number; if ``grouped``, the other mark may group thousands.

    None if not a number."""
    other = "." if decimal == "," else ","
    if grouped and re.match(rf"[+-]?[1-9]\d{{0,2}}(?:[{other}]\d{{3}})+(?![{other}\d])", text):
        text = text.replace(other, "")
    try:
        value = float("no number" if other in text or "_" in text else text.replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def find_decimal_mark(
    file: Path, cells: Mapping[str, Cells], delimiter: str
) -> tuple[Decimal | None, str]:
    """Decimal mark of columns of numbers, and a description if it is a guess.

    None if no column has fractions.  Three digits after the mark may also be thousands, as in 1,234
    or 1.234, unless another number shows that it is a decimal mark.  A point counts as decimal if
    commas separate the cells and every number of the column has it.

    Raises:
        ConfigMismatchError: columns have different marks, or all numbers are ambiguous.
    """
    columns: dict[str, dict[Decimal, str]] = {"clear": {}, "default": {}, "doubtful": {}}
    for name, column in cells.items():
        if classified := _classify([text for text in column if text is not None], delimiter):
            kind, mark, text = classified
            columns[kind].setdefault(mark, f"{name} contains {text}")
    clear = columns["default"] | columns["clear"]
    choice = "or add unused columns to dataset.exclude"
    if len(clear) > 1:
        raise ConfigMismatchError(
            f"{file}: {clear[',']}, {clear['.']}; set dataset.decimal to ',' or '.', {choice}"
        )
    for mark, text in () if clear else columns["doubtful"].items():
        raise ConfigMismatchError(
            f"{file}: {text}, which is a fraction if dataset.decimal='{mark}' and thousands otherwise; set it {choice}"
        )
    guess = "comma" if "," in clear else ""
    if len(cells) == 1 and not columns["clear"]:
        guess = "".join(f"point, {text}" for text in clear.values())
    return next(iter(clear), None), guess


def _classify(texts: list[str], delimiter: str) -> tuple[str, Decimal, str] | None:
    """Evidence for the decimal mark of a column of numbers, the mark, and an example.

    None if a text is not a number, or no number has a fraction.
    """
    integers = [*filter(WHOLE.fullmatch, texts)]
    marked = [*filter(FRACTION.fullmatch, texts)]
    marks = set("".join(marked)) & {",", "."}
    if len(marks) != 1 or len(marked) + len(integers) < len(texts):
        return None
    mark: Decimal = "," if "," in marks else "."
    fractions = [*filterfalse(THOUSANDS_NUMBER.fullmatch, marked)]
    if fractions or any(map(UNGROUPED.match, integers)):
        return "clear", mark, (fractions or marked)[0]
    is_default = mark == "." and delimiter == "," and not integers
    return "default" if is_default else "doubtful", mark, marked[0]
