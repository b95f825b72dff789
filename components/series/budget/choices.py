"""Named strategies next to the best plan: feasible ones and those that no other dominates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.series.budget.spends import SLACK, Spends
from components.series.budget.sum_law import Array, SumLaw


@dataclass(frozen=True)
class Choice:
    """One strategy, and what is to be said of it."""

    name: str
    u: Array  # [n]
    mean: float  # E[Σ y]
    sd: float
    verdict: str  # "kept", "beaten by <name>" or "breaks <constraint>"


def judge(
    law: SumLaw, spends: Spends, offered: dict[str, Array], risk: float | None
) -> list[Choice]:
    """Classify strategies [n] by name: infeasible ones first, then dominated ones.

    A strategy that breaks a constraint is out.  A strategy is dominated if another has as
    much expected sales at less risk, or more at no more risk.

    Source: Gallego (2021), section 1.2.4, "a discrete set of s investment strategies".
    """
    means = {name: law.mean(u) for name, u in offered.items()}
    sds = {name: law.sd(u) for name, u in offered.items()}
    broken = {name: spends.broken(u) for name, u in offered.items()}
    for name, sd in sds.items():
        if broken[name] is None and risk is not None and sd > risk * (1 + SLACK):
            broken[name] = "risk"
    admissible = [name for name in offered if broken[name] is None]
    beaten = dict(
        zip(
            admissible,
            find_dominators(
                [means[name] for name in admissible], [sds[name] for name in admissible]
            ),
            strict=True,
        )
    )

    def verdict(name: str) -> str:
        if broken[name] is not None:
            return f"breaks {broken[name]}"
        by = beaten[name]
        return "kept" if by is None else f"beaten by {admissible[by]}"

    return [Choice(name, u, means[name], sds[name], verdict(name)) for name, u in offered.items()]


def find_dominators(means: list[float], sds: list[float]) -> list[int | None]:
    """For each which other beats it, the one of most mean; None: none does.  Differences of
    rounding do not count."""
    mean = np.array(means)
    sd = np.array(sds)
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
