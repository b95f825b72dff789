"""A stochastic level with a stochastic slope."""

from __future__ import annotations

from pydantic import PositiveFloat

from components.contracts.structural import Facts, Terms
from components.registry import register
from components.series.structural.blocks.rows import NoiseBlock, constant


@register("block", "local_linear_trend")
class LinearTrendBlock(NoiseBlock):
    """Local linear trend: μ_{t+1} = μ_t + δ_t + N(0, σ²_level), δ_{t+1} = δ_t + N(0, σ²_slope).

    There are two states, level and slope; μ_1 is centred at the first observation, δ_1 at 0.

    Source: Scott and Varian (2014); Harvey (1989), section 2.3."""

    initial_slope_sd: PositiveFloat

    def terms(self, facts: Facts) -> Terms:
        like = facts.like
        return Terms(
            label="trend",
            states=("level", "slope"),
            rows=constant(like.new_tensor([1.0, 0.0])),
            G=like.new_tensor([[1.0, 1.0], [0.0, 1.0]]),
            mean=like.new_tensor([facts.centre, 0.0]),
            sd=facts.scale * like.new_tensor([self.initial_sd, self.initial_slope_sd]),
            scales=self.scales(facts, "level_sd", "slope_sd"),
        )
