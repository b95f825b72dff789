"""A budget to be planned: its constraints as a user writes them, the best plan, and
alternatives."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from components.contracts.roles import AtLeastTwo, StrictKeys
from components.errors import ConfigMismatchError, IncompleteResultWarning, NumericalError
from components.series.budget.choices import Choice, judge
from components.series.budget.plan import Plan, best_plan, safest_plan
from components.series.budget.spends import Spends
from components.series.budget.sum_law import Array, SumLaw


def frontier(law: SumLaw, spends: Spends, points: int) -> list[Plan]:
    """Pareto frontier: the safest plan, the plan with the highest expected sales, and plans in
    between.

    The plans in between are the best at equally spaced standard deviations.

    Raises:
        ConfigMismatchError: infeasible constraints.
        NumericalError: the optimiser fails.

    Source: Gallego (2021), section 1.2.4, "a continuum of Pareto optimal investment
    strategies"; Markowitz (1952).
    """
    safest = safest_plan(law, spends)
    boldest = best_plan(law, spends)
    if points == 1 or boldest.sd - safest.sd <= 1e-9 * boldest.sd:
        return [boldest]
    inner = [
        best_plan(law, spends, float(risk))
        for risk in np.linspace(safest.sd, boldest.sd, points)[1:-1]
    ]
    return [safest, *inner, boldest]


BEST = "the plan"

EQUAL = "equal split"

NO_SPEND_LABEL = "nothing"

ACTUAL_SPEND_LABEL = "as it was"


class Limit(StrictKeys):
    """Σ_i w_i × spend of channel i ≤ most, over all weeks."""

    weights: Annotated[dict[str, float], Field(min_length=1)]
    most: float


class Budget(StrictKeys):
    """Budget for the highest expected sales of y_{t+1} + … + y_{t+k}, ``maths.budget.plan``.

    At most b is spent from t to t + k − 1. Spends are in the units of the inputs, u ≥ 0.
    Week j of a plan is week t + j, so that its first week is the last observed one: the
    sales of that week are known, and its spend affects the sales that follow.
    """

    total: NonNegativeFloat | None
    weeks: PositiveInt
    weekly: NonNegativeFloat | None
    least: dict[str, NonNegativeFloat] | None
    most: dict[str, NonNegativeFloat] | None
    weekly_most: dict[str, NonNegativeFloat] | None
    limits: dict[str, Limit] | None
    risk: PositiveFloat | None
    aversion: NonNegativeFloat
    shrink: bool
    frontier: AtLeastTwo
    strategies: dict[str, dict[str, NonNegativeFloat]] | None

    def check(self, channels: list[str], horizon: int) -> None:
        """Raise ConfigMismatchError if there are no inputs, a name is unknown, more weeks are
        planned than forecast, or the constraints are infeasible."""
        if self.total is None:
            return
        if not channels:
            raise ConfigMismatchError(
                f"dataset.budget.total={self.total:g}: the series has no inputs to spend it on; set it to null"
            )
        named = {
            "least": self.least or {},
            "most": self.most or {},
            "weekly_most": self.weekly_most or {},
        }
        named |= {
            f"limits.{name}.weights": limit.weights for name, limit in (self.limits or {}).items()
        }
        named |= {f"strategies.{name}": spends for name, spends in (self.strategies or {}).items()}
        for key, names in named.items():
            for name in names:
                if name not in channels:
                    raise ConfigMismatchError(
                        f"dataset.budget.{key}: the series has no input {name}; its inputs are {', '.join(channels)}"
                    )
        if self.weeks > horizon:
            raise ConfigMismatchError(
                f"dataset.budget.weeks={self.weeks}: only {horizon} weeks are forecast; plan at most this number"
            )
        self.spends(channels).check()

    def spends(self, channels: list[str]) -> Spends:
        """Set of allowed spends [k·c], in the order of weeks, then channels."""
        k = self.weeks
        c = len(channels)

        def over_weeks(by_channel: dict[str, float], default: float = 0.0) -> Array:
            return np.tile(np.array([float(by_channel.get(name, default)) for name in channels]), k)

        rows = [("total", np.ones(k * c), float(self.total or 0.0))]
        if self.weekly is not None:
            weeks = np.repeat(np.eye(k), c, axis=1)
            rows += [("weekly", week, self.weekly) for week in weeks]
        for name, spend in (self.least or {}).items():
            rows.append((f"least.{name}", -over_weeks({name: 1.0}), -spend))
        for name, spend in (self.most or {}).items():
            rows.append((f"most.{name}", over_weeks({name: 1.0}), spend))
        for name, limit in (self.limits or {}).items():
            rows.append((f"limits.{name}", over_weeks(limit.weights), limit.most))
        names, A, b = zip(*rows, strict=True)
        return Spends(
            lower=np.zeros(k * c),
            upper=over_weeks(self.weekly_most or {}, np.inf),
            A=np.stack(A),
            b=np.array(b),
            names=list(names),
        )

    def best(self, law: SumLaw, channels: list[str]) -> Plan | None:
        """The best plan; None, with a warning, if no plan meets the risk or the optimiser fails."""
        try:
            return best_plan(law, self.spends(channels), self.risk, self.aversion)
        except (ConfigMismatchError, NumericalError) as trouble:
            warnings.warn(
                f"dataset.budget: no plan is available: {trouble}",
                IncompleteResultWarning,
                stacklevel=1,
            )
            return None

    def compute_frontier(self, law: SumLaw, channels: list[str]) -> list[Plan]:
        """Plans from the safest to the riskiest; empty, with a warning, if the optimiser fails."""
        try:
            return frontier(law, self.spends(channels), self.frontier)
        except NumericalError as trouble:
            warnings.warn(
                f"dataset.budget: no frontier is available: {trouble}",
                IncompleteResultWarning,
                stacklevel=1,
            )
            return []

    def equal(self, channels: list[str]) -> Array:
        """The whole budget, split equally over weeks and channels [k·c]."""
        n = self.weeks * len(channels)
        each = float(self.total or 0.0) / self.weeks
        return np.full(n, (each if self.weekly is None else min(each, self.weekly)) / len(channels))

    def choices(
        self, law: SumLaw, channels: list[str], spent: Array | None, best: Plan | None
    ) -> Sequence[Choice]:
        """The plan and its alternatives [k·c], each judged: the user's strategies, the equal split,
        no spending, and the actual spends of these weeks where they are known."""
        k = self.weeks
        c = len(channels)
        offered = {} if best is None else {BEST: best.u}
        for name, by_channel in (self.strategies or {}).items():
            offered[name] = np.tile([by_channel.get(channel, 0.0) / k for channel in channels], k)
        offered |= {EQUAL: self.equal(channels), NO_SPEND_LABEL: np.zeros(k * c)}
        if spent is not None:
            offered[ACTUAL_SPEND_LABEL] = spent
        return judge(law, self.spends(channels), offered, self.risk)
