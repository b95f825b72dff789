"""Dropout as an approximate posterior, trained by an α-divergence."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, PositiveFloat, PositiveInt

from components.contracts.capabilities import Dropout, Network
from components.contracts.problems import Batch
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.point.descent import Descent, DescentState, frozen, lower, optimizer_of
from components.maths.power_mean import log_power_mean
from components.posteriors.variational import DropoutPosterior
from components.problems.supervised import Supervised
from components.registry import register
from components.trouble import Misfit


@register("inference", "mc_dropout_alpha")
class MCDropoutAlpha(Inference[Network, Supervised, Batch, DescentState]):
    """MC dropout by an α-divergence: the likelihood of a row is the α-mean of that of K networks that dropout leaves.

        θ̂ = argmin −N/B Σ_b α⁻¹ log K⁻¹ Σ_k p(y_b|x_b, θ ∘ m_bk)^α − log p(θ),   m_bk ~ Bernoulli(1 − p) on the hidden units

    and p(y*|x*) is the mixture of ``n_predict`` such passes.  Every row has masks of its own; −log p(θ), the model's Gaussian
    prior, stands where the divergence of dropout's q to the prior has weights (1 − p) on each layer's.  K = 1 is
    ``mc_dropout`` whatever α, and so is α → 0 in the mean.  Info: ``loss`` by row, which bounds nothing.

    Raises:
        Misfit: the model's dropout is 0, which would leave nothing random.

    Source: Li and Gal (2017), section 4; Rodríguez Santana and Hernández-Lobato (2020), eq. (27)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    needs: ClassVar[frozenset[str]] = frozenset({"network", "dropout"})
    gives: ClassVar[frozenset[str]] = frozenset({"predicts", "redraws"})

    alpha: Annotated[float, Field(gt=0, le=1)]
    n_samples: PositiveInt
    optimizer: Descent
    lr: PositiveFloat
    momentum: Annotated[float, Field(ge=0, lt=1)]
    n_predict: PositiveInt

    def init(self, model: Network, problem: Supervised, rng: Rng) -> DescentState:
        if isinstance(model, Dropout) and model.dropout == 0:
            raise Misfit("model.dropout: 0 leaves MC dropout nothing to draw; set it above 0 or use inference=map")
        return DescentState(model, optimizer_of(model.parameters(), self.optimizer, self.lr, self.momentum))

    def step(self, state: DescentState, batch: Batch, rng: Rng) -> tuple[DescentState, Info]:
        f = state.network(batch.x, rng.noise, self.n_samples)  # [K, B, T, C]
        fit = log_power_mean(state.network.log_prob(f, batch), self.alpha)  # [B]
        return state, lower(state.network, state.optimizer, batch, fit)

    def posterior(self, state: DescentState) -> DropoutPosterior:
        return DropoutPosterior(frozen(state.network), self.n_predict)
