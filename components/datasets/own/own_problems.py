"""Problems of a table of the user's own, which say what its columns were taken for."""

from __future__ import annotations

from dataclasses import dataclass, field

from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled


@dataclass
class OwnTable(Supervised):
    """Rows with labels."""

    about: dict[str, str] = field(default_factory=dict)

    def describe(self) -> dict[str, str]:
        return super().describe() | self.about


@dataclass
class UnlabelledTable(Unlabelled):
    """Rows without labels."""

    about: dict[str, str] = field(default_factory=dict)

    def describe(self) -> dict[str, str]:
        return super().describe() | self.about
