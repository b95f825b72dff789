"""Dropout kept on at prediction."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, PositiveFloat, PositiveInt

from components.contracts.capabilities import Dropout, Network
from components.contracts.problems import Batch
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.point.descent import Descent, DescentState, descend, frozen, optimizer_of
from components.posteriors.variational import DropoutPosterior
from components.problems.supervised import Supervised
from components.registry import register
from components.trouble import Misfit


@register("inference", "mc_dropout")
class MCDropout(Inference[Network, Supervised, Batch, DescentState]):
    """MC dropout: a network trained with dropout, whose predictive is the mixture of S passes with dropout left on.

    p(y*|x*) ≈ S⁻¹ Σ_s p(y*|x*, θ̂ ∘ m_s), m_s ~ Bernoulli(1 − p) on the hidden units; θ̂ minimises the minibatch
    estimate of −Σ_n log p(y_n|x_n, θ ∘ m) − log p(θ).

    Raises:
        Misfit: the model's dropout is 0, which would leave nothing random.

    Source: Gal and Ghahramani (2016), section 4."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    needs: ClassVar[frozenset[str]] = frozenset({"network", "dropout"})
    gives: ClassVar[frozenset[str]] = frozenset({"predicts", "redraws"})

    optimizer: Descent
    lr: PositiveFloat
    momentum: Annotated[float, Field(ge=0, lt=1)]
    n_predict: PositiveInt

    def init(self, model: Network, problem: Supervised, rng: Rng) -> DescentState:
        if isinstance(model, Dropout) and model.dropout == 0:
            raise Misfit("model.dropout: 0 leaves MC dropout nothing to draw; set it above 0 or use inference=map")
        return DescentState(model, optimizer_of(model.parameters(), self.optimizer, self.lr, self.momentum))

    def step(self, state: DescentState, batch: Batch, rng: Rng) -> tuple[DescentState, Info]:
        return state, descend(state.network, state.optimizer, batch, rng.noise)

    def posterior(self, state: DescentState) -> DropoutPosterior:
        return DropoutPosterior(frozen(state.network), self.n_predict)
