"""Regression on known regressors, with variable selection."""

from __future__ import annotations

from components.contracts.structural import Facts, Terms
from components.registry import register
from components.series.structural.blocks.rows import standardise_columns
from components.series.structural.blocks.selection import SelectionBlock


@register("block", "regression")
class RegressionBlock(SelectionBlock):
    """Regression with spike and slab: y has x_tᵀ β, and β_i is 0 unless γ_i = 1.

        γ_i ~ Bernoulli(π_i),   β_γ | γ, σ² ~ N(0, σ² (Ω_γγ)⁻¹)

    Ω = κ/n ((1 − w) XᵀX + w diag XᵀX), κ the ``information`` in observations, w the ``shrinkage``;
    σ² is the variance of the observations.  π is given by ``inclusion`` (1: always in, 0: never),
    otherwise k/p with k the expected size.  There are no states, and one column for each of
    ``columns`` (null: all regressors).

    Raises ConfigMismatchError if a column is missing or constant, ``inclusion`` names an unknown
    column, or the expected size exceeds the number of columns.

    Source: Gallego (2021), section 1.2.2; Scott and Varian (2014)."""

    columns: list[str] | None
    standardise: bool

    def terms(self, facts: Facts) -> Terms:
        places = facts.column_indices("columns", self.columns, facts.x_names, "regressor")
        names = [facts.x_names[j] for j in places]
        rows, units = standardise_columns(facts, places, self.standardise)
        regressors = self.select(facts, names, rows)
        return Terms.regression_terms(
            "regression", regressors, facts.like, dict(zip(names, units, strict=True))
        )
