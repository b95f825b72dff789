"""Carry-over of advertising through last week's sales."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.structural import Covariates, Facts, Terms
from components.registry import register
from components.series.structural.blocks.advertising import AdvertisingBlock


@register("block", "koyck")
class KoyckBlock(AdvertisingBlock):
    """Koyck's form: y has κ (y_{t−1} − c) + Σ_i q_i u_{i,t−1}, with spike and slab on κ and q.

    κ is ``y_lag``.  The thesis most likely fitted this model: the autoregressive state of bsts does
    not accept inputs, and "y_AR" appears among the coefficients.  A time with a missing predecessor
    is skipped; c is the first observation.  There are no states and c + 1 columns; the slab is as
    in ``regression``.  ``saturation``, ``wear_in``, ``wear_out`` and ``interactions`` replace u by
    other inflows.

    Raises:
        ConfigMismatchError: there are no inputs, or a name is unknown.

    Source: Gallego (2021), section 1.2.2 and Table 1.2; Koyck (1954).
    """

    def terms(self, facts: Facts) -> Terms:
        channels, flows, _ = self.inflows(facts, {})
        names = ["y_lag", *(f"{name}_lag" for name in channels)]

        def before(covariates: Covariates) -> Tensor:
            past = torch.cat([(covariates.y - facts.centre).unsqueeze(1), flows(covariates)], 1)
            return torch.cat([torch.full_like(past[:1], torch.nan), past[:-1]])  # [n, 1 + c]

        return Terms.regression_terms("koyck", self.select(facts, names, before, lag=0), facts.like)
