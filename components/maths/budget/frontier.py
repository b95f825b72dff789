"""The plans among which a choice is left: none has more expected sales at no more risk."""

from __future__ import annotations

import numpy as np

from components.maths.budget.plan import Plan, best_plan, safest_plan
from components.maths.budget.spends import Spends
from components.maths.budget.sum_law import SumLaw


def frontier(law: SumLaw, spends: Spends, points: int) -> list[Plan]:
    """Pareto frontier: the safest plan, the plan with most expected sales, and plans between.

    The plans between are the best at equally spaced standard deviations.

    Raises:
        Misfit: constraints that nothing satisfies.
        NumericalTrouble: a plan is not solved.

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
