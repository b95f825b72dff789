"""Warnings of components, each shown once in a run, in a panel."""

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
    QuestionableConfigWarning: "Questionable setting",
}


class Announcements:
    """Warnings of a run's components; other warnings pass through."""

    def __init__(self) -> None:
        self.shown: set[str] = set()
        self.left_out: list[str] = []  # figures, tables and files that failed, with reasons

    @contextmanager
    def show_new_warnings(self, shortfalls: bool = True) -> Iterator[None]:
        """Context that shows new component warnings; ``shortfalls`` includes warnings about too few
        draws.
        """
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
