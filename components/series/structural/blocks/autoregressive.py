"""A stationary part with a memory of p times."""

from __future__ import annotations

import torch
from pydantic import PositiveInt

from components.contracts.structural import Dynamics, Facts, Terms
from components.errors import ConfigMismatchError
from components.registry import register
from components.series.structural.blocks.rows import NoiseBlock, constant


@register("block", "autoregressive")
class AutoregressiveBlock(NoiseBlock):
    """Autoregression: a_{t+1} = φ_1 a_t + … + φ_p a_{t−p+1} + N(0, σ²), φ uniform over the
    stationary region.

    The p states are the latest values, each N(0, s²) at the first time.

    Raises ConfigMismatchError if p is not below the number of observed times.

    Source: Scott (2016), AddAr; Durbin and Koopman (2012), section 3.4."""

    lags: PositiveInt

    def terms(self, facts: Facts) -> Terms:
        p = self.lags
        like = facts.like
        times = len(facts.like)
        if p >= times:
            raise ConfigMismatchError(
                f"{facts.where}.lags={p}: there are only {times} observed time points; lower it"
            )
        eye = torch.eye(p).to(like)
        phi = Dynamics(
            names=tuple(f"ar_{j + 1}" for j in range(p)),
            row=0,
            terms=eye,
            mean=0.0,
            sd=torch.inf,
            within=None,
            start=(0.5, *[0.0] * (p - 1)),
        )
        return Terms(
            label="ar",
            states=tuple(f"ar_{j}" for j in range(p)),
            rows=constant(eye[0]),
            G=torch.diag(like.new_ones(p - 1), -1),
            mean=like.new_zeros(p),
            sd=like.new_full((p,), self.initial_sd * facts.scale),
            scales=self.scales(facts, "ar_sd"),
            transitions=(phi,),
        )
