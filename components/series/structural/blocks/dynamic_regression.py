"""Regression coefficients that follow random walks."""

from __future__ import annotations

import torch

from components.contracts.structural import Facts, Terms
from components.registry import register
from components.series.structural.blocks.rows import NoiseBlock, standardise_columns


@register("block", "dynamic_regression")
class DynamicRegressionBlock(NoiseBlock):
    """Dynamic regression: y has x_tᵀ β_t, β_{j,t+1} = β_jt + N(0, σ_j²), β_j1 ~ N(0, s²).

    There is one state for each of the ``columns`` (null: all regressors), standardised over the
    observed times, so β is the effect of one standard deviation of x.

    Raises ConfigMismatchError if a column is missing or constant.

    Source: Scott (2016), AddDynamicRegression; West and Harrison (1997), chapter 9."""

    columns: list[str] | None

    def terms(self, facts: Facts) -> Terms:
        places = facts.column_indices("columns", self.columns, facts.x_names, "regressor")
        names = [facts.x_names[j] for j in places]
        like = facts.like
        rows, units = standardise_columns(facts, places, True)
        return Terms(
            label="dynamic_regression",
            states=tuple(f"{name}_t" for name in names),
            rows=rows,
            G=torch.eye(len(places)).to(like),
            mean=like.new_zeros(len(places)),
            sd=like.new_full((len(places),), self.initial_sd * facts.scale),
            scales=self.scales(facts, *(f"{name}_sd" for name in names)),
            units={f"{name}_sd": unit for name, unit in zip(names, units, strict=True)},
        )
