"""The best plan: highest expected sales within a budget and a risk, or with a penalty on risk."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from components.errors import ConfigMismatchError, NumericalError
from components.series.budget.spends import Spends
from components.series.budget.sum_law import Array, SumLaw

TOLERANCE = (
    # of the gain, and of the standard deviation without spending: the largest shortfall of a plan
    1e-6
)
SLSQP_TOLERANCE = 1e-15  # of SLSQP, in the same units
ROUNDS = 1000


@dataclass(frozen=True)
class Plan:
    """Spending plan and its expected result."""

    u: Array  # [n]
    mean: float  # E[Σ y]
    sd: float  # of Σ y
    gap: float  # upper limit of another plan's advantage, in the units of sales


def best_plan(
    law: SumLaw, spends: Spends, risk: float | None = None, aversion: float = 0.0
) -> Plan:
    """The u that maximises E[Σ_h y_{t+h} | u] − λ sd[Σ_h y_{t+h} | u] subject to the constraints
    and sd ≤ σ (``risk``).

    A concave function over a convex set: a linear programme if λ = 0 and σ does not bind, otherwise
    sequential quadratic programming.  The result is verified: for η ≥ 0, the multiplier of the
    variance, L(v) = f(v) − η (Var v − σ²) bounds the optimum from above and lies below its tangent
    at u, so no plan is better than L(u) + max_v ∇L(u)'(v − u), a linear programme.  ``gap`` is the
    distance to this bound, at most ``TOLERANCE``.

    The printed programme chooses u_{t+1} for y_{t+1}, but by (1.4) u_{t+1} affects only y_{t+2};
    this one chooses u_t … u_{t+k−1} for y_{t+1} … y_{t+k}.

    Raises ConfigMismatchError (infeasible constraints, or a risk that no plan meets),
    NumericalError (the optimiser fails).

    Source: Gallego (2021), section 1.2.4, "Budget allocation"; Kraft (1988); Frank and Wolfe (1956)
    for the bound."""
    spends.check()
    scaled = _ScaledPlan.of(law, spends)
    inner = scaled.law
    corner = scaled.spends.best(inner.effect)
    if aversion == 0 and (risk is None or law.sd(corner * scaled.unit) <= risk):
        return _plan(law, corner * scaled.unit, 0.0)

    def value(u: Array) -> float:
        return float(inner.effect @ u - aversion * inner.sd(u))

    def gradient(u: Array) -> Array:
        return inner.effect - aversion * inner.slope(u) / (2 * inner.sd(u))

    if risk is None:
        u = scaled.ascend(value, gradient, corner)[0]
        limit = math.inf
        eta = 0.0
    else:
        limit = (risk / scaled.sale) ** 2
        safest = scaled.safest(corner)
        if inner.variance(safest) > limit:
            least = math.sqrt(inner.variance(safest)) * scaled.sale
            raise ConfigMismatchError(
                f"dataset.budget.risk={risk:g}: no plan has a standard deviation below {least:.6g}; raise it"
            )
        begin = _bisect_to_variance(inner, safest, corner, limit)
        u, eta = scaled.ascend(value, gradient, begin, limit)
        u = _bisect_to_variance(inner, safest, u, limit)  # back inside the limit, despite rounding
    gap = scaled.gap(u, value(u), gradient(u), limit, eta)
    if gap > TOLERANCE * (1 + abs(value(u))):
        raise NumericalError(
            f"the plan may fall short of the best by {gap:.1e} standard deviations of sales",
            "plan fewer dataset.budget.weeks",
        )
    return _plan(law, u * scaled.unit, max(gap, 0.0) * scaled.sale)


def safest_plan(law: SumLaw, spends: Spends) -> Plan:
    """Plan u of least variance; its ``gap`` bounds the standard deviation.

    Raises:
        ConfigMismatchError: infeasible constraints.
    """
    spends.check()
    scaled = _ScaledPlan.of(law, spends)
    inner = scaled.law
    u = scaled.safest(scaled.spends.best(np.zeros(law.size)))
    gap = scaled.gap(u, -inner.variance(u), -inner.slope(u), math.inf, 0.0) / (2 * inner.sd(u))
    return _plan(law, u * scaled.unit, max(gap, 0.0) * scaled.sale)


def _plan(law: SumLaw, u: Array, gap: float) -> Plan:
    return Plan(u, law.mean(u), law.sd(u), gap)


def _bisect_to_variance(law: SumLaw, safest: Array, u: Array, limit: float) -> Array:
    """Last point between the safest plan and u with variance at most the limit, by bisection."""
    low, high = (1.0, 1.0) if law.variance(u) <= limit else (0.0, 1.0)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if law.variance(safest + middle * (u - safest)) <= limit
            else (low, middle)
        )
    return safest + low * (u - safest)


@dataclass(frozen=True)
class _ScaledPlan:
    """The problem in units of the budget and of the standard deviation of sales, for meaningful
    tolerances."""

    law: SumLaw
    spends: Spends
    unit: float  # of a spend
    sale: float  # of sales

    @classmethod
    def of(cls, law: SumLaw, spends: Spends) -> _ScaledPlan:
        unit = spends.total if spends.total > 0 else 1.0
        sale = math.sqrt(law.base_variance)
        small = SumLaw(law.a / sale, law.r * (unit / sale), law.v / sale**2)
        size = np.maximum(np.abs(spends.A).max(1), 1e-300)
        inner = replace(
            spends,
            lower=spends.lower / unit,
            upper=spends.upper / unit,
            A=spends.A / size[:, None],
            b=spends.b / size / unit,
        )
        return cls(small, inner, unit, sale)

    def ascend(
        self,
        value: Callable[[Array], float],
        gradient: Callable[[Array], Array],
        begin: Array,
        limit: float = math.inf,
    ) -> tuple[Array, float]:
        """Maximiser subject to the constraints and Var ≤ ``limit``, and the multiplier of that
        limit."""
        A = self.spends.A
        b = self.spends.b
        inside = [{"type": "ineq", "fun": lambda u: b - A @ u, "jac": lambda u: -A}]
        if math.isfinite(limit):
            inside += [
                {
                    "type": "ineq",
                    "fun": lambda u: limit - self.law.variance(u),
                    "jac": lambda u: -self.law.slope(u),
                }
            ]
        solution = minimize(
            lambda u: -value(u),
            begin,
            jac=lambda u: -gradient(u),
            bounds=np.stack([self.spends.lower, self.spends.upper], 1),
            constraints=inside,
            method="SLSQP",
            options={"ftol": SLSQP_TOLERANCE, "maxiter": ROUNDS},
        )
        eta = max(float(solution.multipliers[-1]), 0.0) if math.isfinite(limit) else 0.0
        return np.clip(solution.x, self.spends.lower, self.spends.upper), eta

    def safest(self, begin: Array) -> Array:
        """Spends of least variance subject to the constraints."""
        return self.ascend(lambda u: -self.law.variance(u), lambda u: -self.law.slope(u), begin)[0]

    def gap(self, u: Array, value: float, gradient: Array, limit: float, eta: float) -> float:
        """Upper bound on the improvement of the best plan over u.

        The bound holds for every η; if the given η is too loose, η is optimised.
        """

        def above(eta: float) -> float:
            tangent = gradient - eta * self.law.slope(u)
            short = eta * (limit - self.law.variance(u)) if eta > 0 else 0.0
            return short + float(tangent @ (self.spends.best(tangent) - u))

        first = above(eta)
        if first <= TOLERANCE * (1 + abs(value)) or not math.isfinite(limit):
            return first
        minimum = minimize_scalar(
            lambda log: above(math.exp(log)),
            bounds=(-16, 12),
            method="bounded",
            options={"xatol": 1e-9},
        )
        return min(first, float(minimum.fun))
