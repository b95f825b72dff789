"""Result of one check of a component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CheckState = Literal["passed", "failed", "not checked"]


@dataclass(frozen=True)
class CheckedComponent:
    """A component under test."""

    role: str
    name: str
    cls: type

    def __str__(self) -> str:
        return f"{self.role}={self.name}"


@dataclass(frozen=True)
class CheckResult:
    """One check of one component; ``reason`` has the file and line of a failure."""

    component: str
    check: str
    state: CheckState
    reason: str


class NonConformanceError(Exception):
    """Failure of a check, in one line with the location to change."""


class NotCheckedError(Exception):
    """Reason why a check does not apply to a component."""
