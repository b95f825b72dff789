"""Dropout as an approximate posterior, trained by an α-divergence."""

from __future__ import annotations

from pydantic import PositiveInt

from components.contracts.problems import Batch
from components.contracts.roles import AboveZeroToOne, Info
from components.contracts.streams import Rng
from components.inference.alpha.power_mean import log_power_mean
from components.inference.point.descent import DescentState, lower
from components.inference.point.dropout_descent import DropoutDescent
from components.registry import register


@register("inference", "mc_dropout_alpha")
class MCDropoutAlpha(DropoutDescent):
    """MC dropout with an α-divergence: a row's likelihood is an α-mean over K networks.

        θ̂ = argmin −N/B Σ_b α⁻¹ log K⁻¹ Σ_k p(y_b|x_b, θ ∘ m_bk)^α − log p(θ)
        m_bk ~ Bernoulli(1 − p) on the hidden units

    p(y*|x*) is the mixture of ``n_predict`` such passes.  Every row has its own masks.
    −log p(θ), the model's Gaussian prior, replaces the divergence between dropout's q and
    the prior, in which each layer has weight (1 − p).  K = 1 is ``mc_dropout`` for every α;
    α → 0 is ``mc_dropout`` in expectation.  Info: ``loss`` per row, which is not a bound.

    Raises:
        ConfigMismatchError: the model's dropout is 0, so nothing would be random.

    Source: Li and Gal (2017), section 4; Rodríguez Santana and Hernández-Lobato (2020),
    eq. (27).
    """

    alpha: AboveZeroToOne
    n_samples: PositiveInt

    def step(self, state: DescentState, batch: Batch, rng: Rng) -> tuple[DescentState, Info]:
        f = state.network(batch.x, rng.noise, self.n_samples)  # [K, B, T, C]
        fit = log_power_mean(state.network.log_prob(f, batch), self.alpha)  # [B]
        return state, lower(state.network, state.optimizer, batch, fit)
