"""A level with a mean-reverting slope, for longer forecasts."""

from __future__ import annotations

from pydantic import PositiveFloat

from components.contracts.structural import Dynamics, Facts, Terms
from components.registry import register
from components.series.structural.blocks.rows import NoiseBlock, constant


@register("block", "semilocal_trend")
class SemilocalTrendBlock(NoiseBlock):
    """Semilocal linear trend: μ_{t+1} = μ_t + δ_t + N(0, σ²_level), δ_{t+1} = D + φ(δ_t − D) + N(0,
    σ²_slope).

    The three states are level, slope and the constant D ~ N(0, s²).  φ ~ N(m, s²) within (−1,
    1).

    Source: Scott (2016), AddSemilocalLinearTrend; Brodersen et al. (2015), section 2.1."""

    initial_slope_sd: PositiveFloat
    mean_slope_sd: PositiveFloat
    phi_mean: float
    phi_sd: PositiveFloat

    def terms(self, facts: Facts) -> Terms:
        like = facts.like
        back = Dynamics(
            names=("slope_phi",),
            row=1,
            terms=like.new_tensor([[0.0, 1.0, -1.0]]),  # δ_{t+1} = D + φ (δ_t − D)
            mean=self.phi_mean,
            sd=self.phi_sd,
            within=(-1.0, 1.0),
            start=(0.5,),
        )
        return Terms(
            label="trend",
            states=("level", "slope", "mean_slope"),
            rows=constant(like.new_tensor([1.0, 0.0, 0.0])),
            G=like.new_tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]),
            mean=like.new_tensor([facts.centre, 0.0, 0.0]),
            sd=facts.scale
            * like.new_tensor([self.initial_sd, self.initial_slope_sd, self.mean_slope_sd]),
            scales=self.scales(facts, "level_sd", "slope_sd"),
            transitions=(back,),
        )
