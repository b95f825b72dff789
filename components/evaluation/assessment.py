"""Final results on a posterior: scores, checks, figures and tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from torch import Tensor

from components.contracts.checks import Check, NamedScores
from components.contracts.progress import report_each
from components.errors import IncompleteResultWarning
from components.figures.attempts import V, attempt

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from components.figures.style import Figures

    Drawing = Callable[[], Mapping[str, Figure]]
    Tabulating = Callable[[], Mapping[str, pd.DataFrame]]


@dataclass(frozen=True)
class Assessment:
    """Scores of a posterior, checks of an attack on it, and figures and tables.  These are made on
    first access, so that a run stores its scores before it draws anything.  A figure or table that
    fails is reported as a ``MissingOutputWarning``."""

    scores: NamedScores  # numbers, or [R] where replicates are a dimension
    checks: list[Check] = field(default_factory=list)  # checks of the attack
    # correctness of the observed test labels [labels] bool, by the name of the score that is its
    # mean
    outcomes: dict[str, Tensor] = field(default_factory=dict)
    # key: name in error messages
    drawings: Mapping[str, Drawing] = field(default_factory=dict)
    tabulations: Mapping[str, Tabulating] = field(default_factory=dict)
    # costs of the attack, for example cost/attack_gradients
    costs: dict[str, float] = field(default_factory=dict)

    @cached_property
    def figures(self) -> Figures:
        """All figures that can be drawn, by name."""
        return _attempt_each(self.drawings)

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables that can be made, by name."""
        return _attempt_each(self.tabulations)

    def after(self, first: Assessment) -> Assessment:
        """This assessment of an attack appended to ``first``, the assessment without an attack."""
        return replace(
            self,
            scores=first.scores | self.scores,
            checks=[*first.checks, *self.checks],
            drawings={**first.drawings, **self.drawings},
            tabulations={**first.tabulations, **self.tabulations},
        )


def _attempt_each(makers: Mapping[str, Callable[[], Mapping[str, V]]]) -> dict[str, V]:
    """Results of all functions that do not fail."""
    made: dict[str, V] = {}
    for label in report_each(makers, str):
        made |= attempt(label, makers[label])
    return made


def size_suffix(eps: float) -> str:
    """Size of an attack in the names of its scores, for example eps=0.10."""
    return f"eps={eps:.2f}" if round(eps, 2) == eps else f"eps={eps:g}"


def warn_of_failures(checks: list[Check]) -> None:
    """Warn with ``IncompleteResultWarning`` if a check of an attack failed."""
    failed = [f"{check.name} ({check.detail})" for check in checks if check.passed is False]
    if failed:
        message = f"the security evaluation is not reliable; failed checks: {'; '.join(failed)}"
        warnings.warn(IncompleteResultWarning(message), stacklevel=2)


def tabulate_attack(curve: pd.DataFrame, checks: list[Check]) -> dict[str, Tabulating]:
    """Tables of an attack: its curve by size, and its checks."""
    import pandas as pd

    tables = {
        "security_curve": curve,
        "attack_checks": pd.DataFrame(
            [check[:3] for check in checks], columns=["check", "passed", "detail"]
        ),
    }
    return {"tables of the attack": lambda: tables}
