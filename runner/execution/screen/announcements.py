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
            kind = warning.category
            text = str(warning.message)
            is_ours = issubclass(kind, tuple(TITLES)) or "components" in str(warning.filename)
            if issubclass(kind, IncompleteResultWarning) and not shortfalls:
                continue
            if not is_ours:
                warnings.warn_explicit(warning.message, kind, warning.filename, warning.lineno)
            elif issubclass(kind, MissingOutputWarning):
                self.left_out.append(text)
            elif text not in self.shown:
                self.shown.add(text)
                printer.announce(TITLES.get(kind, kind.__name__), text)
