"""Marks of fractions and of thousands in columns of texts, and texts with two readings."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from components.errors import ConfigMismatchError

Decimal = Literal[".", ","]
Cells = Sequence[str | None]
FRACTION = re.compile(r"[+-]?\d*[.,]\d+(?:[eE][+-]?\d+)?")
WHOLE = re.compile(r"[+-]?\d+(?:[eE][+-]?\d+)?")
# a fraction, or more than a thousand
THOUSANDS_NUMBER = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
GROUPED_NUMBER = re.compile(r"[+-]?\d{1,3}(?:[ .,'’\u00a0\u202f]\d{3})+(?:[.,]\d+)?")


def is_number(text: str) -> bool:
    """True for a number with any marks."""
    return any(form.fullmatch(text.strip()) for form in (WHOLE, FRACTION, GROUPED_NUMBER))


def parse_number(text: str, decimal: Decimal | None) -> float | None:
    """A finite number; the mark that is not the decimal one may group thousands.  None: no number."""
    other = "." if decimal == "," else ","
    if re.match(rf"[+-]?[1-9]\d{{0,2}}(?:[{other}]\d{{3}})+(?![{other}\d])", text):
        text = text.replace(other, "")
    try:
        value = float("no number" if other in text or "_" in text else text.replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def find_decimal_mark(
    file: Path, cells: Mapping[str, Cells], delimiter: str
) -> tuple[Decimal | None, str]:
    """Mark of the fractions in columns of numbers, and words for a mark that is a guess.

    None: no column has fractions.  Three digits after the mark are thousands as well, as in 1,234
    or 1.234, unless another number shows that the mark is one of fractions.  A point is read as
    such where commas separate the cells and every number of the column has it.

    Raises:
        ConfigMismatchError: columns have different marks, or all numbers have two readings.
    """
    clear: dict[str, str] = {}
    doubtful: dict[str, str] = {}
    guess = ""
    for name, column in cells.items():
        texts = [text for text in column if text is not None]
        whole = [text for text in texts if WHOLE.fullmatch(text)]
        marked = [text for text in texts if FRACTION.fullmatch(text)]
        marks = set("".join(marked)) & {",", "."}
        if len(marks) != 1 or len(marked) + len(whole) < len(texts):
            continue
        fractions = [text for text in marked if not THOUSANDS_NUMBER.fullmatch(text)]
        kind = clear
        if not fractions and all(len(text.strip("+-")) < 4 for text in whole):
            if whole or delimiter != "," or "," in marks:
                kind = doubtful
            elif len(cells) == 1:
                guess = f"point, {marked[0]} is a fraction"
        kind.setdefault(marks.pop(), f"{name} holds {(fractions or marked)[0]}")
    choice = "or name columns that are not used in dataset.exclude"
    if len(clear) > 1:
        raise ConfigMismatchError(
            f"{file}: {clear[',']}, {clear['.']}; set dataset.decimal to ',' or '.', {choice}"
        )
    if clear or not doubtful:
        return ("," if "," in clear else "." if clear else None), "comma" if "," in clear else guess
    ((mark, text),) = [*doubtful.items()][:1]
    raise ConfigMismatchError(
        f"{file}: {text}, a fraction with dataset.decimal='{mark}' or a thousand with the other mark; set it, {choice}"
    )
