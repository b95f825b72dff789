"""Goodwill, which advertising builds up and time wears down."""

from __future__ import annotations

import torch

from components.contracts.structural import Dynamics, Facts, Terms
from components.registry import register
from components.series.structural.blocks.advertising import AdvertisingBlock
from components.series.structural.blocks.rows import NoiseBlock, constant
from components.series.structural.blocks.selection import select_columns


@register("block", "nerlove_arrow")
class NerloveArrowBlock(AdvertisingBlock, NoiseBlock):
    """Nerlove and Arrow's goodwill A_t, a decaying stock of spending, as a term of y.

    y has A_t, A_{t+1} = (1 − δ) A_t + Σ_i q_i u_it + N(0, σ²), spike and slab on q.
    Spending at t moves y from t + 1 on; immediately by q, in the long run by q/δ.  Written
    A_t = A⁰_t + Σ_i q_i s_it with the stocks s_{i,t+1} = (1 − δ) s_it + u_it, s_i1 = 0: one
    state A⁰, which no spending feeds, and c columns, with q drawn with all other
    coefficients.  1 − δ is uniform on (0, 1); the slab is the one of ``regression`` with u
    in the place of X.

    ``saturation``, ``wear_in``, ``wear_out`` and ``interactions`` put other inflows in the
    place of u, as section 1.2.2 names them.

    Raises:
        ConfigMismatchError: there are no inputs, or none of that name.

    Source: Gallego (2021), eqs. (1.4), (1.5); Nerlove and Arrow (1962).
    """

    def terms(self, facts: Facts) -> Terms:
        names, flows = self.inflows(facts)
        like = facts.like
        one = torch.ones(1).to(like)
        stays = Dynamics(
            names=("goodwill_kept",),
            row=0,
            terms=one.view(1, 1),
            mean=0.0,
            sd=torch.inf,
            within=(0.0, 1.0),
            start=(0.5,),
        )
        return Terms(
            label="goodwill",
            states=("goodwill",),
            rows=constant(one),
            G=torch.zeros_like(one).view(1, 1),
            mean=torch.zeros_like(one),
            sd=self.initial_sd * facts.scale * one,
            scales=(facts.noise("goodwill_sd", self.guess, self.df, self.upper, (0,)),),
            transitions=(stays,),
            regressors=select_columns(self.prior(), facts, names, flows, fades=(0, 0)),
        )
