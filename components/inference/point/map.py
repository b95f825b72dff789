"""Maximum a posteriori estimation of a network's parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pydantic import NonNegativeFloat, PositiveInt, model_validator

from components.contracts.capabilities import Penalised
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.point.descent import DescentKeys, DescentState, descend, frozen
from components.maths.annealing import cosine_anneal
from components.posteriors.point_estimate import PointEstimate
from components.problems.supervised import Supervised
from components.registry import register


@dataclass(frozen=True)
class AnnealedDescent(DescentState):
    """A network on its way down, and how many steps it has made."""

    t: int = 0


@register("inference", "map")
class MAP(Inference[Penalised, Supervised, Batch, AnnealedDescent], DescentKeys):
    """Maximum a posteriori: one network at a posterior mode, by Adam or momentum descent.

    θ̂ = argmin_θ −Σ_n log p(y_n|x_n, θ) − log p(θ), by Adam or gradient descent with
    momentum on minibatches, with sums scaled by N/B.  The step size is lr, or falls from lr
    to ``final_lr`` along half a cosine over ``anneal_steps`` and then stays there.  Dropout
    is off, or acts only in training.

    Source: Bishop (2006), eq. (3.55); Kingma and Ba (2014), Algorithm 1; Loshchilov and
    Hutter (2017), eq. (5).
    """

    requires = Requirements(kinds={"supervised"}, capabilities={"network", "penalised"})
    provides = {"predicts"}

    schedule: Literal["constant", "cosine"]
    anneal_steps: PositiveInt | None
    final_lr: NonNegativeFloat
    dropout: Literal["ignored", "training"]

    @model_validator(mode="after")
    def _ends(self) -> MAP:
        if self.schedule == "cosine" and self.anneal_steps is None:
            raise ValueError(
                "anneal_steps: schedule=cosine falls over so many steps; give it, such as ${steps}"
            )
        return self

    def rate_at(self, t: int) -> float:
        """Step size of the step that follows t steps."""
        if self.schedule == "constant" or self.anneal_steps is None:
            return self.lr
        return cosine_anneal(self.lr, self.final_lr, t, self.anneal_steps)

    def init(self, model: Penalised, problem: Supervised, rng: Rng) -> AnnealedDescent:
        return AnnealedDescent(model, self.build_optimizer(model.parameters()))

    def step(self, state: AnnealedDescent, batch: Batch, rng: Rng) -> tuple[AnnealedDescent, Info]:
        state.optimizer.settings["lr"] = self.rate_at(state.t)
        generator = rng.noise if self.dropout == "training" else None
        return replace(state, t=state.t + 1), descend(
            state.network, state.optimizer, batch, generator
        )

    def posterior(self, state: AnnealedDescent) -> PointEstimate:
        return PointEstimate(frozen(state.network))
