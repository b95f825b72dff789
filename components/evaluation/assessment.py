"""What is known of a posterior in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from components.contracts.checks import Check

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Assessment:
    """Scores, figures and tables of a posterior, and what was checked of an attack on it."""

    scores: dict[str, Tensor | float]  # numbers, or [R] where replicates are a dimension
    figures: dict[str, Figure] = field(default_factory=dict)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)  # of the attack
    # by the name of a score the observed test labels that are predicted rightly [labels] bool, of which it is the share
    outcomes: dict[str, Tensor] = field(default_factory=dict)
