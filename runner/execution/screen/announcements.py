"""Warnings of components, shown in a panel of their own, each once in a run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from components.errors import (
    IncompleteResultWarning,
    MissingOutputWarning,
    QuestionableConfigWarning,
    SimulatedDataWarning,
)
from runner.terminal import printer

TITLES: dict[type[Warning], str] = {
    SimulatedDataWarning: "Simulated data",
    IncompleteResultWarning: "Not complete",
    QuestionableConfigWarning: "To be doubted",
}


class Announcements:
    """Warnings that a run's components have raised; other warnings pass through."""

    def __init__(self) -> None:
        self.shown: set[str] = set()
        self.left_out: list[str] = []  # figures, tables and files that could not be made, and why

    @contextmanager
    def show_new_warnings(self, shortfalls: bool = True) -> Iterator[None]:
        """Show component warnings raised inside, except shortfall warnings that are not news."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for warning in caught:
            ours = issubclass(warning.category, tuple(TITLES)) or "components" in str(
                warning.filename
            )
            if issubclass(warning.category, IncompleteResultWarning) and not shortfalls:
                continue
            if not ours:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
            elif issubclass(warning.category, MissingOutputWarning):
                self.left_out.append(str(warning.message))
            elif str(warning.message) not in self.shown:
                self.shown.add(str(warning.message))
                printer.announce(
                    TITLES.get(warning.category, warning.category.__name__), str(warning.message)
                )
