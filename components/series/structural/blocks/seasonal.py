"""Seasonal effects, such as monthly or day-of-week effects."""

from __future__ import annotations

import torch

from components.contracts.roles import AtLeastTwo
from components.contracts.structural import Facts, Terms
from components.registry import register
from components.series.structural.blocks.rows import NoiseBlock, constant


@register("block", "seasonal")
class SeasonalBlock(NoiseBlock):
    """Seasonal effects that sum to about 0 over a period of p: τ_{t+1} = −Σ_{j<p−1} τ_{t−j} + N(0,
    σ²).

    The p − 1 states are the latest effects.  Long periods are expensive: d states cost d³ per time;
    see ``trigonometric``.

    Raises ConfigMismatchError if the period is longer than the observed part.

    Source: Scott and Varian (2014); Harvey (1989), section 2.3.4."""

    period: AtLeastTwo

    def terms(self, facts: Facts) -> Terms:
        p = self.period
        like = facts.like
        facts.check_period(p)
        G = torch.diag(like.new_ones(p - 2), -1)
        G[0] = -1.0
        return Terms(
            label=f"season_{p}",
            states=tuple(f"season_{p}_{j}" for j in range(p - 1)),
            rows=constant(like.new_tensor([1.0] + [0.0] * (p - 2))),
            G=G,
            mean=like.new_zeros(p - 1),
            sd=like.new_full((p - 1,), self.initial_sd * facts.scale),
            scales=self.scales(facts, f"season_{p}_sd"),
        )
