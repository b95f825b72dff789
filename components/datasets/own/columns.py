"""Columns of a table of the user's own, read as text and made into numbers: every guess is told,
every bad cell is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from components.datasets.own.text_table import TRUE_OR_FALSE, TextTable
from components.errors import ConfigMismatchError
from components.problems.input_columns import ColumnType, InputColumn

MOST_LEVELS = 30  # different texts that a column of inputs may hold: one input for each
Array = NDArray[np.float64]


@dataclass(frozen=True)
class EncodedColumn:
    """Inputs of one column, [N, k] with k = 1 for numbers and one for each text but the first
    otherwise, their names, and what the column was taken for."""

    values: Array
    taken_for: str
    names: list[str]
    is_text: bool = False
    levels: tuple[str, ...] = ()  # texts of the column, in order


def encode(table: TextTable, name: str) -> EncodedColumn:
    """A column of inputs: numbers where every cell is one, else 1 for the text of a row and 0 for
    the others.

    The first text of the alphabet is the one that others are compared with, and has no input: with
    one for each, and an intercept, inputs would depend on each other. A cell that is no number in a
    column where nine in ten are is named as a mistake, not taken for a text.

    Raises:
        ConfigMismatchError: a cell is missing, one is no number among numbers, or there are too
            many different texts."""
    texts = _texts(table, name)
    numbers = [table.number(text) for text in texts]
    bad = [row for row, value in enumerate(numbers) if value is None]
    if not bad:
        kind = (
            "true or false" if {text.lower() for text in texts} <= set(TRUE_OR_FALSE) else "numbers"
        )
        return EncodedColumn(np.array(numbers, dtype=np.float64)[:, None], kind, [name])
    if 10 * len(bad) <= len(texts) or all(table.hint(texts[row]) for row in bad):
        raise ConfigMismatchError(
            f"{table.where(bad[0])}: {name} is {texts[bad[0]]!r}, no number{' as the others are' * (len(bad) < len(texts))}; "
            f"mend it, or name the column in dataset.exclude{table.hint(texts[bad[0]])}"
        )
    levels = sorted(set(texts))
    if len(levels) > MOST_LEVELS:
        raise ConfigMismatchError(
            f"dataset.inputs: {name} holds {len(levels)} different texts, at most {MOST_LEVELS} become inputs; name "
            "it in dataset.exclude, or make numbers of it"
        )
    values = np.array([[float(text == level) for level in levels[1:]] for text in texts]).reshape(
        len(texts), -1
    )
    return EncodedColumn(
        values,
        f"{len(levels)} texts",
        [f"{name} {level}" for level in levels[1:]],
        True,
        tuple(levels),
    )


def input_columns(encoded: Mapping[str, EncodedColumn]) -> tuple[InputColumn, ...]:
    """Names, types and texts of encoded columns."""
    types: dict[str, ColumnType] = {"true or false": "true or false"}
    return tuple(
        InputColumn(
            name,
            "texts" if column.is_text else types.get(column.taken_for, "numbers"),
            column.levels,
        )
        for name, column in encoded.items()
    )


def _texts(table: TextTable, name: str) -> list[str]:
    """Cells of a column of inputs.

    Raises:
        ConfigMismatchError: a cell is missing."""
    cells = table.column(name, "inputs")
    if None in cells:
        raise ConfigMismatchError(
            f"{table.where(cells.index(None))}: {name} is missing; fill it, or name the column in dataset.exclude"
        )
    return [str(cell) for cell in cells]


def parse_real_labels(table: TextTable, name: str) -> Array:
    """Labels of one task [N], NaN where a cell is missing.

    Raises:
        ConfigMismatchError: a cell is no number."""
    labels = np.full(table.n_rows, np.nan)
    for row, cell in enumerate(table.column(name, "targets")):
        if cell is not None:
            value = table.number(cell)
            if value is None:
                raise ConfigMismatchError(
                    f"{table.where(row)}: {name} is {cell!r}, no number; mend it, add it to dataset.missing, or set "
                    f"dataset.labels to binary or classes{table.hint(cell)}"
                )
            labels[row] = value
    return labels


def parse_classes(value: object) -> tuple[str, ...]:
    """Names of classes from a list of them, or 0 … C − 1 from their number C.

    Raises:
        ValueError: it is neither, or a name occurs twice.
    """
    listed = range(value) if type(value) is int else value
    names = tuple(map(str, listed)) if isinstance(listed, list | tuple | range) else ()
    if len(set(names)) < max(2, len(names)):
        raise ValueError(
            "classes: must be a list of different names, [cat, dog], or the number of the labels 0, 1, …, at least two, "
            f"not {value!s:.60}"
        )
    return names


ClassList = Annotated[tuple[str, ...], BeforeValidator(parse_classes)]


def class_labels(
    table: TextTable, names: Sequence[str], binary: bool, given: Sequence[str] | None = None
) -> tuple[NDArray[np.int64], list[str]]:
    """Class numbers [N, T], −1 where a cell is missing, and the classes in order: the ``given``
    ones, else numbers by size, else texts by alphabet.

    All tasks have the same classes.

    Raises:
        ConfigMismatchError: fewer than two classes, more than two where two are asked for,
            numbers with fractions, or as many classes as hardly any label is seen twice; or a
            label is not among the given ones."""
    columns = [table.column(name, "targets") for name in names]
    cells = [cell for column in columns for cell in column if cell is not None]
    values = {text: table.number(text) for text in dict.fromkeys(cells)}
    classes = _sort_classes(values) if given is None else list(given)
    if given is None and (error := _describe_class_error(classes, values, len(cells), binary)):
        raise ConfigMismatchError(f"dataset.targets={','.join(names)}: {error}")
    place = _find_places(table, ",".join(names), classes, values)
    numbers = np.array(
        [[-1 if cell is None else place[cell] for cell in column] for column in columns],
        dtype=np.int64,
    )
    return numbers.T, classes


def _find_places(
    table: TextTable, names: str, classes: Sequence[str], values: Mapping[str, float | None]
) -> dict[str, int]:
    """Places of labels among the classes.

    Raises:
        ConfigMismatchError: a label is not among them.
    """
    place = {text: i for i, text in enumerate(classes)}
    by_number = {table.number(text): i for text, i in place.items()} | {None: -1}  # 7.0 is 7
    place = {text: by_number.get(value, -1) for text, value in values.items()} | place
    if unknown := [text for text in values if place[text] < 0]:
        raise ConfigMismatchError(
            f"dataset.classes: {names} holds {unknown[0]!r}, which is not among the {len(classes)} classes "
            f"({classes[0]}, …, {classes[-1]}); name it in its place, as [cat, dog] or [1, 2]"
        )
    return place


def _sort_classes(values: Mapping[str, float | None]) -> list[str]:
    if None in values.values():
        return sorted(values)
    return sorted(values, key=lambda text: (values[text], text))


def _describe_class_error(
    classes: Sequence[str], values: Mapping[str, float | None], n_labels: int, binary: bool
) -> str:
    """Describe the error in classes by their numbers (None: a text is no class); "": no error."""
    by_size = None not in values.values()
    for first, second in pairwise(classes):
        if by_size and values[first] == values[second]:
            return (
                f"classes {first} and {second} are one number; write it in one way, or mark "
                "both as texts, as c1"
            )
    if len(classes) < 2 or (binary and len(classes) > 2):
        class_list = ", ".join(classes[:6]) + (", …" if len(classes) > 6 else "")
        mend = "name other columns" if len(classes) < 2 else "set dataset.labels=classes"
        requirement = "two are asked for" if binary else "two or more are needed"
        return f"{len(classes)} classes ({class_list}), {requirement}; {mend}"
    for text in classes:
        if (values[text] or 0) % 1:
            return f"{text} is a number with a fraction, no class; set dataset.labels=real"
    if 2 * len(classes) > n_labels > 2 * MOST_LEVELS:
        return (
            f"{len(classes)} classes of {n_labels} labels, most seen once; name another "
            "column, set dataset.labels=real, or give the classes of a network in dataset.classes"
        )
    return ""
