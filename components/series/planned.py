"""The plan of a budget under one posterior, with scores, figures and tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from components.contracts.capabilities.structural import KnownResponse
from components.contracts.posteriors import Affine
from components.contracts.sequences import Series
from components.contracts.streams import seed_from
from components.series.budget.budget import Budget
from components.series.budget.choices import Choice
from components.series.budget.plan import Plan
from components.series.budget.promise import CENTRAL, Promise
from components.series.budget.shrinkage import shrink_effects
from components.series.budget.sum_law import Array, SumLaw, numbers
from components.series.figures.advertising.budget import budget_figure

if TYPE_CHECKING:
    import pandas as pd

    from components.figures.style import Figures


@dataclass(frozen=True)
class PlannedBudget:
    """Best use of a budget according to a posterior: k weeks, c channels."""

    budget: Budget
    channels: list[str]
    weeks: list[str]  # dates of the spends, or weeks since the last observation
    law: SumLaw  # of the future sales
    spent: Array | None  # actual spends in these weeks [k·c], if known
    # true effect of each spend on the sum of sales [k·c], if known
    effect: Array | None

    @cached_property
    def plan(self) -> Plan | None:
        return self.budget.best(self.law, self.channels)

    @cached_property
    def choices(self) -> list[Choice]:
        return list(self.budget.choices(self.law, self.channels, self.spent, self.plan))

    @cached_property
    def equal(self) -> Array:
        return self.budget.equal(self.channels)

    def promise(self, u: Array) -> Promise:
        """Predicted gain of spends u over the equal split."""
        return Promise.of(self.law, u - self.equal)

    def scores(self) -> dict[str, float]:
        """Expected sales gained by the plan over the equal split, and their standard deviation.

        ``plan_gap`` bounds the gain of any other plan, ``plan_width90`` is the width of the 90 %
        interval of the gain; a point estimate of the effects has no interval.  If the truth is
        known, the scores include the realised gain (``plan_realised``), the expected minus the
        realised gain (``plan_excess``), whether it is positive (``plan_over_promised``), whether
        the interval contains the realised gain (``plan_coverage90``), and the share of the largest
        possible true gain, for the plan and for the equal split: 1 is best.
        """
        if self.plan is None:
            return {}
        promise = self.promise(self.plan.u)
        out = {
            "plan_gain": promise.gain,
            "plan_sd": self.plan.sd,
            "plan_gap": self.plan.gap,
        }
        if promise.has_interval:
            out["plan_width90"] = promise.upper - promise.lower
        if self.effect is not None:
            out |= promise.judge(float(self.effect @ (self.plan.u - self.equal)))
            most = float(self.effect @ self.budget.spends(self.channels).best(self.effect))
            if most > 0:
                out |= {"plan_share": float(self.effect @ self.plan.u) / most}
                out |= {"equal_share": float(self.effect @ self.equal) / most}
        return out

    def figures(self) -> Figures:
        """Risk and return of the frontier and of all choices, and the weekly spends of the plan."""
        along = self.budget.compute_frontier(self.law, self.channels)
        title = "" if self.plan is None else self.promise(self.plan.u).describe()
        figure = budget_figure(along, self.choices, self.channels, self.weeks, title)
        return {"budget": figure}

    def tables(self) -> dict[str, pd.DataFrame]:
        """``budget``: for each choice its spends by channel, expected sales, gain over the equal
        split with a central 90 % interval, the interval of the sales themselves, and its verdict;
        ``budget_plan``: the plan, week by week."""
        import pandas as pd

        nothing = self.law.mean(np.zeros(self.law.size))
        rows = []
        for choice in self.choices:
            by_channel = choice.u.reshape(len(self.weeks), -1).sum(0)
            spends = dict(zip(self.channels, by_channel, strict=True))
            promise = self.promise(choice.u)
            low, high = (self.law.quantile(choice.u, level) for level in CENTRAL)
            rows.append(
                {
                    "choice": choice.name,
                    "spent": choice.u.sum(),
                    **spends,
                    "expected": choice.mean,
                    "sd": choice.sd,
                    "added by spending": choice.mean - nothing,
                    "gain": promise.gain,
                    "gain lower90": promise.lower,
                    "gain upper90": promise.upper,
                    "sales lower90": low,
                    "sales upper90": high,
                    "verdict": choice.verdict,
                }
            )
        out = {"budget": pd.DataFrame(rows)}
        if self.plan is not None:
            by_week = pd.DataFrame(self.plan.u.reshape(len(self.weeks), -1), columns=self.channels)
            by_week.insert(0, "week", self.weeks)
            out["budget_plan"] = by_week
        return out


def plan_series_budget(
    budget: Budget,
    series: Series,
    channels: list[str],
    said: Affine,
    truth: KnownResponse | None,
    generator: torch.Generator,
) -> PlannedBudget:
    """The plan for a series' budget, given a posterior forecast of the k weeks that follow.

    The generator is for the draws of ``budget.shrink``."""
    assert series.u is not None, "Budget.check rejects series without inputs"
    k = budget.weeks
    n = len(series.u)
    law = SumLaw.of_draws(said.mean, said.effect.flatten(2), said.covariance.sum((1, 2)))
    if budget.shrink:
        law = shrink_effects(law, len(channels), np.random.default_rng(seed_from(generator)))
    later = None if series.ahead is None else series.ahead.u
    spending = (
        None if later is None else numbers(torch.cat([series.u[-1:], later[: k - 1]]).flatten())
    )
    weeks = list(series.dates[n - 1 : n - 1 + k]) or [f"T + {j}" if j else "T" for j in range(k)]
    effect = None if truth is None else numbers(truth.effect(k).sum(0).flatten())
    return PlannedBudget(budget, channels, weeks, law, spending, effect)
