"""A level that follows a random walk."""

from __future__ import annotations

import torch

from components.contracts.structural import Facts, Terms
from components.registry import register
from components.series.structural.blocks.rows import NoiseBlock, constant


@register("block", "local_level")
class LevelBlock(NoiseBlock):
    """Local level: μ_{t+1} = μ_t + N(0, σ²), μ_1 centred at the first observation.

    There is one state.  σ has the prior 1/σ² ~ Gamma(df/2, df guess²/2), σ ≤ upper.

    Source: Scott and Varian (2014); Harvey (1989), section 2.3; Gallego (2021), section 1.2.2."""

    def terms(self, facts: Facts) -> Terms:
        ones = torch.ones(1).to(facts.like)
        return Terms(
            label="level",
            states=("level",),
            rows=constant(ones),
            G=ones.view(1, 1),
            mean=facts.centre * ones,
            sd=self.initial_sd * facts.scale * ones,
            scales=self.scales(facts, "level_sd"),
        )
