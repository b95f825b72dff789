"""Goodwill, built up by advertising and decaying over time."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat

from components.contracts.structural import Dynamics, Facts, Terms
from components.errors import ConfigMismatchError
from components.registry import register
from components.series.structural.blocks.advertising import AdvertisingBlock
from components.series.structural.blocks.rows import NoiseBlock, constant


@register("block", "nerlove_arrow")
class NerloveArrowBlock(AdvertisingBlock, NoiseBlock):
    """Nerlove and Arrow's goodwill A_t, a decaying stock of spending, as a term of y.

    y has A_t, A_{t+1} = (1 − δ) A_t + Σ_i q_i u_it + N(0, σ²), spike and slab on q.
    Spending at t affects y from t + 1: by q at first, by q/δ in the long run.  Written
    A_t = A⁰_t + Σ_i q_i s_it with the stocks s_{i,t+1} = (1 − δ) s_it + u_it, s_i1 = 0: one state
    A⁰, independent of spending, and c columns, with q drawn with all other coefficients.  1 − δ is
    uniform on (0, 1); the slab is as in ``regression`` with u instead of X.

    ``saturation``, ``wear_in``, ``wear_out`` and ``interactions`` replace u by other inflows, as
    named in section 1.2.2.

    ``vidale_wolfe`` limits the stocks of channels: dA/dt = r u (1 − A/M) − δ A, in weeks
    s_{i,t+1} = (1 − δ − κ u_it) s_it + u_it with κ = r/M, so that q_i s_i, with r = q_i, stays
    below M = q_i/κ: the carry-over depends on the spend.  Each channel has its own limit; A⁰ has
    none.  Several κ of a channel give separate columns, among which spike and slab select.

    Raises:
        ConfigMismatchError: there are no inputs, a name is unknown, or a spend exhausts its limit.

    Source: Gallego (2021), eqs. (1.4), (1.5); Nerlove and Arrow (1962); Vidale and Wolfe (1957),
    eq. (1).
    """

    vidale_wolfe: dict[str, list[PositiveFloat]]

    def terms(self, facts: Facts) -> Terms:
        names, flows, limits = self.inflows(facts, self.vidale_wolfe)
        like = facts.like
        taken = float((flows(facts.seen).nan_to_num(0.0) * like.new_tensor(limits)).max())
        if taken >= 1:
            raise ConfigMismatchError(
                f"{facts.where}.vidale_wolfe: κ times the largest spend is {taken:.3g}, but must "
                "be below 1; lower κ"
            )
        ones = torch.ones(1).to(like)
        stays = Dynamics(
            names=("goodwill_kept",),
            row=0,
            terms=ones.view(1, 1),
            mean=0.0,
            sd=torch.inf,
            within=(0.0, 1.0),
            start=(0.5,),
        )
        return Terms(
            label="goodwill",
            states=("goodwill",),
            rows=constant(ones),
            G=torch.zeros_like(ones).view(1, 1),
            mean=torch.zeros_like(ones),
            sd=self.initial_sd * facts.scale * ones,
            scales=self.scales(facts, "goodwill_sd"),
            transitions=(stays,),
            regressors=self.select(facts, names, flows, fades=(0, 0), limits=limits),
        )
