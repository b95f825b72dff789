"""Class labels of a user's table: names, order and numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from components.datasets.own.text_table import TextTable
from components.errors import ConfigMismatchError

MOST_LEVELS = 30  # distinct texts allowed in an input column, which become one input each


def parse_classes(value: object) -> int | tuple[str, ...]:
    """Parse class names from a list or a range, 1-12; or the number C of labels 0 … C − 1.

    Raises:
        ValueError: the value has another form, or a name occurs twice.
    """
    if type(value) is int and value > 1:
        return value
    ends = re.fullmatch(r"(\d+)-(\d+)", str(value))
    listed = range(int(ends[1]), int(ends[2]) + 1) if ends else value
    names = tuple(map(str, listed)) if isinstance(listed, list | tuple | range) else ()
    if len(set(names)) < max(2, len(names)):
        raise ValueError(
            "classes: must be a list of distinct names, [cat, dog], a range of labels, 1-12, or "
            f"the number of labels 0, 1, …, at least 2, not {value!s:.60}"
        )
    return names


ClassList = Annotated[int | tuple[str, ...], BeforeValidator(parse_classes)]


def name_classes(given: ClassList | None) -> list[str]:
    """Names of the given classes, in order."""
    return [*map(str, range(given) if isinstance(given, int) else given or ())]


def class_labels(
    table: TextTable, names: Sequence[str], binary: bool, given: ClassList | None
) -> tuple[NDArray[np.int64], list[str]]:
    """Class numbers [N, T], −1 for missing cells, and the classes in order: the ``given`` ones,
    else numbers by size, else texts alphabetically.

    All tasks have the same classes.

    Raises:
        ConfigMismatchError: fewer than two classes, more than two for binary labels, fractional
            numbers, or mostly unique labels; a label is not among the given ones, or no label is 0
            when only their number is given."""
    columns = [table.column(name, "targets") for name in names]
    cells = [cell for column in columns for cell in column if cell is not None]
    values = {text: table.number(text) for text in dict.fromkeys(cells)}
    classes = _sort_classes(values) if given is None else name_classes(given)
    if given is None and (error := _describe_class_error(classes, values, len(cells), binary)):
        raise ConfigMismatchError(f"dataset.targets={','.join(names)}: {error}")
    place = _find_places(table, ",".join(names), classes, values)
    numbers = np.array(
        [[-1 if cell is None else place[cell] for cell in column] for column in columns],
        dtype=np.int64,
    )
    if isinstance(given, int) and cells and 0 not in numbers:
        raise ConfigMismatchError(
            f"dataset.classes={given}: no label of {','.join(names)} is 0, so labels may start at 0 or 1; set "
            f"dataset.classes=0-{given - 1} or 1-{given}"
        )
    return numbers.T, classes


def _find_places(
    table: TextTable, names: str, classes: Sequence[str], values: Mapping[str, float | None]
) -> dict[str, int]:
    """Indices of labels among the classes.

    Raises:
        ConfigMismatchError: a label is not among the classes.
    """
    place = {text: i for i, text in enumerate(classes)}
    by_number = {table.number(text): i for text, i in place.items()} | {None: -1}  # 7.0 is 7
    place = {text: by_number.get(value, -1) for text, value in values.items()} | place
    if unknown := [text for text in values if place[text] < 0]:
        raise ConfigMismatchError(
            f"dataset.classes: {names} holds {unknown[0]!r}, which is not among the {len(classes)} classes "
            f"({classes[0]}, …, {classes[-1]}); list all classes in order, such as [cat, dog] or 1-{len(classes)}"
        )
    return place


def _sort_classes(values: Mapping[str, float | None]) -> list[str]:
    if None in values.values():
        return sorted(values)
    return sorted(values, key=lambda text: (values[text], text))


def _describe_same_classes(classes: Sequence[str], numbers: Mapping[str, float | None]) -> str:
    """Describe two classes with the same number, or texts that differ only in case; "" if none."""
    by_value: dict[object, str] = {}
    for text in classes:
        same = by_value.setdefault(numbers.get(text, text.casefold()), text)
        if same != text:
            fault = "are the same number" if numbers else "differ only in case"
            remedy = "mark both as texts, such as c1" if numbers else "list both in dataset.classes"
            return f"classes {same} and {text} {fault}; use one spelling, or {remedy}"
    return ""


def _describe_class_error(
    classes: Sequence[str], values: Mapping[str, float | None], n_labels: int, binary: bool
) -> str:
    """Describe the error in classes from their numbers (None for a text); "" if they are valid."""
    by_size = None not in values.values()
    if same := _describe_same_classes(classes, values if by_size else {}):
        return same
    if len(classes) < 2 or (binary and len(classes) > 2):
        class_list = ", ".join(classes[:6]) + (", …" if len(classes) > 6 else "")
        mend = "choose other columns" if len(classes) < 2 else "set dataset.labels=classes"
        requirement = "must be two" if binary else "must be at least two"
        return f"{len(classes)} classes ({class_list}), {requirement}; {mend}"
    for text in classes:
        if (values[text] or 0) % 1:
            return f"{text} is a fractional number, not a class; set dataset.labels=real"
    if 2 * len(classes) > n_labels > 2 * MOST_LEVELS:
        return (
            f"{len(classes)} classes among {n_labels} labels, mostly unique; choose another "
            "column, set dataset.labels=real, or list the classes of a network in dataset.classes"
        )
    return ""
