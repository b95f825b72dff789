"""Feasible spends: bounds and named linear constraints, so that an error can name one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog

from components.errors import ConfigMismatchError, NumericalError
from components.series.budget.sum_law import Array

EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
SLACK = 1e-8  # relative tolerance of a constraint, for rounding errors


@dataclass(frozen=True)
class Spends:
    """{u: lower ≤ u ≤ upper, A u ≤ b}; the first row of A is the budget, Σ u ≤ b_0."""

    lower: Array  # [n]
    upper: Array  # [n]; inf: unbounded
    A: Array  # [m, n]
    b: Array  # [m]
    names: list[str]  # of the rows, as their keys are written

    @property
    def total(self) -> float:
        """The budget."""
        return float(self.b[0])

    def best(self, value: Array) -> Array:
        """A vertex u that maximises value'u, by linear programming.

        Raises NumericalError."""
        solution = linprog(
            -value, A_ub=self.A, b_ub=self.b, bounds=self._bounds, method="highs-ds", options=EXACT
        )
        if solution.status != 0:
            raise NumericalError(
                f"the linear programme has no solution ({solution.message})",
                "change dataset.budget",
            )
        return np.clip(solution.x, self.lower, self.upper)

    @property
    def _bounds(self) -> Array:
        return np.stack([self.lower, self.upper], 1)

    def broken(self, u: Array) -> str | None:
        """The constraint with the largest relative violation by u; None if u is feasible."""
        size = np.maximum(np.abs(self.b), np.abs(self.A) @ np.abs(u))
        over = (self.A @ u - self.b) / np.where(size > 0, size, 1.0)
        beyond = np.maximum(self.lower - u, np.where(np.isinf(self.upper), -np.inf, u - self.upper))
        wrong = beyond / np.maximum(1.0, np.abs(u))
        if max(over.max(), wrong.max()) <= SLACK:
            return None
        return self.names[int(over.argmax())] if over.max() >= wrong.max() else "bounds of a week"

    def check(self) -> None:
        """Raise ConfigMismatchError, which names the constraint, if the constraints are
        infeasible."""
        if (crossed := np.flatnonzero(self.lower > self.upper)).size:
            j = crossed[0]
            raise ConfigMismatchError(
                f"dataset.budget: minimum {self.lower[j]:g} exceeds maximum {self.upper[j]:g} for one spend in one week"
            )
        rest = replace(self, A=self.A[1:], b=self.b[1:], names=self.names[1:])
        conflict = rest._violated_constraint()
        if conflict is not None:
            raise ConfigMismatchError(
                f"dataset.budget.{conflict}: conflicts with the other constraints; loosen one of them"
            )
        least = linprog(
            np.ones(len(self.lower)),
            A_ub=rest.A,
            b_ub=rest.b,
            bounds=self._bounds,
            method="highs-ds",
            options=EXACT,
        )
        if least.fun > self.total * (1 + SLACK):
            binding_names = [
                name
                for name, dual in zip(rest.names, least.ineqlin.marginals, strict=True)
                if dual < -SLACK
            ]
            why = ", ".join(binding_names) or "minimum of each week"
            raise ConfigMismatchError(
                f"dataset.budget.total={self.total:g}: minimum spends ({why}) need {least.fun:g}; raise it, or lower them"
            )

    def _violated_constraint(self) -> str | None:
        """Name of a constraint violated at the least total violation; None if feasible."""
        n = len(self.lower)
        m = len(self.b)
        if m == 0:
            return None
        size = np.maximum(np.abs(self.A).max(1), 1e-300)
        breach = linprog(
            np.r_[np.zeros(n), np.ones(m)],
            A_ub=np.hstack([self.A / size[:, None], -np.eye(m)]),
            b_ub=self.b / size,
            bounds=np.vstack([self._bounds, np.tile([0.0, np.inf], (m, 1))]),
            method="highs-ds",
            options=EXACT,
        )
        worst = breach.x[n:]
        limit = SLACK * max(1.0, float(np.abs(self.b / size).max()))
        return self.names[int(worst.argmax())] if worst.max() > limit else None
