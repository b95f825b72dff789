"""Bursts of sensor faults, in which observations are lost or stuck."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, model_validator
from torch import Tensor

from components.contracts.attackers import Contamination
from components.contracts.roles import ZeroToOne
from components.contracts.streams import Rng
from components.maths.exponential.standard_draws import standard_uniform


class BurstContamination(Contamination):
    """Contamination of a share of the times, independently or in runs of a mean length."""

    knowledge = "black box"
    probability: ZeroToOne
    run_length: Annotated[float, Field(ge=1)] | None

    @model_validator(mode="after")
    def _check_run_length(self) -> BurstContamination:
        """Reject runs too short for the share of faulty times: two runs are at least one time
        apart."""
        p = self.probability
        least = 1.0 if p <= 0.5 or p == 1 else p / (1 - p)
        if self.run_length is not None and self.run_length < least:
            raise ValueError(
                f"run_length={self.run_length:g}: runs with a mean length below {least:g} cannot cover {p:g} of the times"
            )
        return self

    def draw_bursts(self, y: Tensor, rng: Rng) -> Tensor:
        """Indicators [R, T] bool of the faulty times of observations [R, T, dy]."""
        u = standard_uniform(y.shape[:2], rng.attack, y)
        return bursts(u, self.probability, self.run_length)


def bursts(u: Tensor, probability: float, run_length: float | None) -> Tensor:
    """Indicators [R, T] bool of the times in a burst, from uniforms u [R, T].

    Each time lies in a burst with the given probability p:
    b_1 ~ Bernoulli(p), P(b_t = 0 | b_{t−1} = 1) = 1/ℓ,
    P(b_t = 1 | b_{t−1} = 0) = p/(ℓ(1 − p)).  This is a stationary chain with runs of mean
    length ℓ.  Without ``run_length`` times are independent, with runs of mean length 1/(1 − p).
    """
    if run_length is None or probability in (0, 1):
        return u < probability
    stay = 1 - 1 / run_length
    enter = probability / (run_length * (1 - probability))
    hit = torch.empty_like(u, dtype=torch.bool)
    now = u[:, 0] < probability
    hit[:, 0] = now
    for t in range(1, u.shape[1]):
        now = u[:, t] < torch.where(now, stay, enter)
        hit[:, t] = now
    return hit
