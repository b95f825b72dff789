"""Named strategies compared with the best plan: feasible and undominated ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.series.budget.spends import SLACK, Spends
from components.series.budget.sum_law import Array, SumLaw


@dataclass(frozen=True)
class Choice:
    """One strategy, its moments and its verdict."""

    name: str
    u: Array  # [n]
    mean: float  # E[Σ y]
    sd: float
    verdict: str  # "kept", "beaten by <name>" or "breaks <constraint>"


def judge(
    law: SumLaw, spends: Spends, offered: dict[str, Array], risk: float | None
) -> list[Choice]:
    """Classify strategies [n] by name: infeasible ones first, then dominated ones.

    A strategy that breaks a constraint is infeasible.  It is dominated if another has at least its
    expected sales at less risk, or more at no more risk.

    Source: Gallego (2021), section 1.2.4, "a discrete set of s investment strategies".
    """
    moments = {name: (law.mean(u), law.sd(u)) for name, u in offered.items()}
    verdicts = {}
    for name, u in offered.items():
        broken = spends.broken(u)
        if broken is None and risk is not None and moments[name][1] > risk * (1 + SLACK):
            broken = "risk"
        verdicts[name] = "kept" if broken is None else f"breaks {broken}"
    admissible = [name for name in offered if verdicts[name] == "kept"]
    dominators = find_dominators([moments[name] for name in admissible])
    for name, by in zip(admissible, dominators, strict=True):
        if by is not None:
            verdicts[name] = f"beaten by {admissible[by]}"
    return [Choice(name, u, *moments[name], verdicts[name]) for name, u in offered.items()]


def find_dominators(moments: list[tuple[float, float]]) -> list[int | None]:
    """Index of the dominating strategy with the highest mean, for each (mean, standard deviation);
    None if undominated.  Rounding errors are ignored."""
    mean, sd = np.array(moments).reshape(-1, 2).T
    out: list[int | None] = []
    for i in range(len(mean)):
        close = SLACK * sd[i]
        better = (
            (mean >= mean[i] - close)
            & (sd <= sd[i] + close)
            & ((mean > mean[i] + close) | (sd < sd[i] - close))
        )
        out.append(int(np.where(better, mean, -np.inf).argmax()) if better.any() else None)
    return out
