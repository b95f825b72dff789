"""A season as a sum of harmonics, with few states for a long period."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from pydantic import Field, PositiveInt

from components.contracts.structural import Facts, Terms
from components.errors import ConfigMismatchError
from components.registry import register
from components.series.structural.blocks.rows import NoiseBlock, constant


@register("block", "trigonometric")
class TrigonometricBlock(NoiseBlock):
    """Trigonometric season: harmonics 1 … H of a period, which need not be an integer.  With λ_j =
    2πj/p:

        γ_{j,t+1} =  γ_jt cos λ_j + γ*_jt sin λ_j + N(0, σ²),   γ*_{j,t+1} = −γ_jt sin λ_j + γ*_jt cos λ_j + N(0, σ²)

    y has Σ_j γ_jt.  There are 2H states, one fewer if 2H = p: the last pair's γ* never affects y.

    Raises ConfigMismatchError if the period is longer than the observed part, or too short for the
    number of harmonics.

    Source: Harvey (1989), section 2.3.4; Durbin and Koopman (2012), section 3.2.2."""

    period: Annotated[float, Field(ge=2)]
    harmonics: PositiveInt

    def terms(self, facts: Facts) -> Terms:
        p = self.period
        like = facts.like
        facts.check_period(p)
        if 2 * self.harmonics > p:
            raise ConfigMismatchError(
                f"{facts.where}.harmonics={self.harmonics}: a period of {p:g} has at most {int(p // 2)}"
            )
        waves = [2 * math.pi * j / p for j in range(1, self.harmonics + 1)]
        G = torch.block_diag(
            *(
                like.new_tensor([[math.cos(w), math.sin(w)], [-math.sin(w), math.cos(w)]])
                for w in waves
            )
        )
        d = 2 * self.harmonics - (2 * self.harmonics == p)
        label = f"season_{p:g}"
        return Terms(
            label=label,
            states=tuple(
                f"{label}_{'cos' if j % 2 == 0 else 'sin'}_{j // 2 + 1}" for j in range(d)
            ),
            rows=constant(like.new_tensor([1.0 - j % 2 for j in range(d)])),
            G=G[:d, :d],
            mean=like.new_zeros(d),
            sd=like.new_full((d,), self.initial_sd * facts.scale),
            scales=(facts.noise(f"{label}_sd", self.guess, self.df, self.upper, tuple(range(d))),),
        )
