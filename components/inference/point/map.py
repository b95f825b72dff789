"""Maximum a posteriori estimation of a network's parameters."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, PositiveFloat

from components.contracts.capabilities import Penalised
from components.contracts.problems import Batch
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.point.descent import Descent, DescentState, descend, frozen, optimizer_of
from components.posteriors.point_estimate import PointEstimate
from components.problems.supervised import Supervised
from components.registry import register


@register("inference", "map")
class MAP(Inference[Penalised, Supervised, Batch, DescentState]):
    """Maximum a posteriori: one network at a mode of its posterior, by Adam or gradient descent with momentum.

    θ̂ = argmin_θ −Σ_n log p(y_n|x_n, θ) − log p(θ), on minibatches whose sum is scaled by N/B; dropout is off.

    Source: Bishop (2006), eq. (3.55); Kingma and Ba (2014), Algorithm 1."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    needs: ClassVar[frozenset[str]] = frozenset({"network", "penalised"})
    gives: ClassVar[frozenset[str]] = frozenset({"predicts"})

    optimizer: Descent
    lr: PositiveFloat
    momentum: Annotated[float, Field(ge=0, lt=1)]

    def init(self, model: Penalised, problem: Supervised, rng: Rng) -> DescentState:
        return DescentState(model, optimizer_of(model.parameters(), self.optimizer, self.lr, self.momentum))

    def step(self, state: DescentState, batch: Batch, rng: Rng) -> tuple[DescentState, Info]:
        return state, descend(state.network, state.optimizer, batch, None)

    def posterior(self, state: DescentState) -> PointEstimate:
        return PointEstimate(frozen(state.network))
