"""Dropout kept on at prediction."""

from __future__ import annotations

from components.contracts.problems import Batch
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.point.descent import DescentState, descend
from components.inference.point.dropout_descent import DropoutDescent
from components.registry import register


@register("inference", "mc_dropout")
class MCDropout(DropoutDescent):
    """MC dropout: a network trained with dropout, predicting by S passes with dropout on.

    The predictive distribution is the mixture over these passes.
    p(y*|x*) ≈ S⁻¹ Σ_s p(y*|x*, θ̂ ∘ m_s), m_s ~ Bernoulli(1 − p) on the hidden units; θ̂
    minimises the minibatch estimate of −Σ_n log p(y_n|x_n, θ ∘ m) − log p(θ).

    Raises:
        ConfigMismatchError: the model's dropout is 0, so nothing would be random.

    Source: Gal and Ghahramani (2016), section 4.
    """

    def step(self, state: DescentState, batch: Batch, rng: Rng) -> tuple[DescentState, Info]:
        return state, descend(state.network, state.optimizer, batch, rng.noise)
