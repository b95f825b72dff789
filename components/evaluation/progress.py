"""How far a long evaluation is, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# current task, finished parts, total number of parts
Told = Callable[[str, int, int], None]


def untold(what: str, done: int, of: int) -> None:
    """Nobody listens."""


@dataclass
class Progress:
    """Counts the parts of one evaluation."""

    told: Told
    of: int
    done: int = 0

    def begins(self, what: str) -> None:
        """The next part begins."""
        self.told(what, self.done, self.of)
        self.done += 1
