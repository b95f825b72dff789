"""Maximum a posteriori estimation of a network's parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import NonNegativeFloat, PositiveInt, model_validator

from components.contracts.problems import Batch
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.point.descent import DescentState, descend
from components.inference.point.network_descent import NetworkDescent
from components.maths.annealing import cosine_anneal
from components.registry import register


@register("inference", "map")
class MAP(NetworkDescent):
    """Maximum a posteriori: one network at a posterior mode, by Adam or momentum descent.

    θ̂ = argmin_θ −Σ_n log p(y_n|x_n, θ) − log p(θ), by Adam or gradient descent with
    momentum on minibatches, with sums scaled by N/B.  The step size is lr, or falls from lr
    to ``final_lr`` along half a cosine over ``anneal_steps`` and then stays there.  Dropout
    is off, or acts only in training.

    Source: Bishop (2006), eq. (3.55); Kingma and Ba (2014), Algorithm 1; Loshchilov and
    Hutter (2017), eq. (5).
    """

    schedule: Literal["constant", "cosine"]
    anneal_steps: PositiveInt | None
    final_lr: NonNegativeFloat
    dropout: Literal["ignored", "training"]

    @model_validator(mode="after")
    def _ends(self) -> MAP:
        if self.schedule == "cosine" and self.anneal_steps is None:
            raise ValueError(
                "anneal_steps: schedule=cosine requires the number of annealing steps; set it, for "
                "example to ${steps}"
            )
        return self

    def rate_at(self, t: int) -> float:
        """Step size of the step that follows t steps."""
        if self.schedule == "constant" or self.anneal_steps is None:
            return self.lr
        return cosine_anneal(self.lr, self.final_lr, t, self.anneal_steps)

    def step(self, state: DescentState, batch: Batch, rng: Rng) -> tuple[DescentState, Info]:
        state.optimizer.settings["lr"] = self.rate_at(state.t)
        generator = rng.noise if self.dropout == "training" else None
        return replace(state, t=state.t + 1), descend(
            state.network, state.optimizer, batch, generator
        )
