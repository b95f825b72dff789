"""Figures and tables, made separately, so that a failure affects neither other figures nor scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any, TypeVar

from components.contracts.progress import report_each
from components.errors import MissingOutputWarning

V = TypeVar("V")  # a figure or a table
ANALYSIS = "the method's figures of its posterior"  # ``Analyses.figures``
LONGEST = 160  # maximum length of an error in a message


def name_of(make: Callable[..., object]) -> str:
    """Name of a function or method, or of the class of another callable.

    A partial has the name of the callable inside it.
    """
    while isinstance(make, partial):
        make = make.func
    return make.__name__ if isinstance(make, FunctionType | MethodType) else type(make).__name__


def describe_error(error: BaseException) -> str:
    """Class of an error and the first line of its message, truncated to one line of a terminal."""
    lines = str(error).strip().splitlines()
    kind = type(error).__name__
    if not lines:
        return kind
    first = lines[0] if len(lines[0]) <= LONGEST else f"{lines[0][: LONGEST - 1]}…"
    return f"{first} ({kind})"


def warn_not_shown(what: str, error: BaseException) -> None:
    """Warn with ``MissingOutputWarning`` that the figure or table ``what`` failed with an error."""
    warnings.warn(
        MissingOutputWarning(f"{what} is left out: {describe_error(error)}"), stacklevel=2
    )


def attempt(what: str, make: Callable[..., Mapping[str, V]], *arguments: Any) -> dict[str, V]:
    """Figures or tables by name from ``make(*arguments)``; if it fails, none, with a
    ``MissingOutputWarning``."""
    try:
        return dict(make(*arguments))
    except Exception as error:
        warn_not_shown(what, error)
        return {}


def draw_each(figures: Iterable[Callable[..., Mapping[str, V]]], *arguments: Any) -> dict[str, V]:
    """Apply ``attempt`` to each figure function with the same arguments: all figures that can be
    drawn, by name."""
    drawings: dict[str, V] = {}
    for figure in report_each(list(figures), lambda figure: f"figure {name_of(figure)}"):
        drawings |= attempt(f"figure {name_of(figure)}", figure, *arguments)
    return drawings
