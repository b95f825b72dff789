"""Figures and tables, each made by itself: one that fails costs neither the others nor any
score."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any, TypeVar

from components.contracts.progress import report_each
from components.errors import MissingOutputWarning

V = TypeVar("V")  # a figure or a table
ANALYSIS = "what its method draws of its posterior"  # ``Analyses.figures``
LONGEST = 160  # letters of an error that a line shows


def name_of(make: Callable[..., object]) -> str:
    """Name of a function or method, or of the class of another callable.

    A partial has the name of the callable inside it.
    """
    while isinstance(make, partial):
        make = make.func
    return make.__name__ if isinstance(make, FunctionType | MethodType) else type(make).__name__


def describe_error(error: BaseException) -> str:
    """The first line of an error's message and its class, cut to one line of a terminal."""
    lines = str(error).strip().splitlines()
    kind = type(error).__name__
    if not lines:
        return kind
    first = lines[0] if len(lines[0]) <= LONGEST else f"{lines[0][: LONGEST - 1]}…"
    return f"{first} ({kind})"


def warn_not_shown(what: str, error: BaseException) -> None:
    """Warns ``MissingOutputWarning`` of one figure or table, ``what``, and of the error that it
    met."""
    warnings.warn(
        MissingOutputWarning(f"{what} is left out: {describe_error(error)}"), stacklevel=2
    )


def attempt(what: str, make: Callable[..., Mapping[str, V]], *arguments: Any) -> dict[str, V]:
    """Figures or tables by name, made by ``make(*arguments)``; where it raises none, and a
    ``MissingOutputWarning`` warning."""
    try:
        return dict(make(*arguments))
    except Exception as error:
        warn_not_shown(what, error)
        return {}


def draw_each(figures: Iterable[Callable[..., Mapping[str, V]]], *arguments: Any) -> dict[str, V]:
    """``attempt`` of each figure function on the same arguments: all figures that can be drawn, by
    name."""
    drawings: dict[str, V] = {}
    for figure in report_each(list(figures), lambda figure: f"figure {name_of(figure)}"):
        drawings |= attempt(f"figure {name_of(figure)}", figure, *arguments)
    return drawings
