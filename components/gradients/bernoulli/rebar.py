"""REBAR: the score function with a continuous relaxation as control variate."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveFloat

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import RowBatch
from components.contracts.streams import Rng
from components.gradients.bernoulli.relaxation import Relaxation, RelaxationGradient
from components.gradients.learnt import Learnt
from components.registry import register


@register("gradient", "rebar")
class REBAR(RelaxationGradient[BernoulliLayers[RowBatch], Relaxation]):
    """REBAR: f at a relaxed layer is a control variate with a known mean, layer by layer.

    The mean is known by reparameterisation.

        ∂/∂α_l E f = E[(f(z) − η c(ζ̃)) (z_l − σ(α_l)) + η ∂/∂α_l (c(ζ) − c(ζ̃))]
        ζ = α_l + logit u,   z_l = 1[ζ > 0],   ζ̃ ~ ζ | z_l
        c(ζ) = f(z_1, …, z_{l−1}, σ(ζ/λ), σ(α_{l+1}), …)

    The layers above l are set to their means given the relaxed one, so that c is smooth in ζ; draws
    of them would be step functions of ζ without a pathwise derivative.  λ_l and η_l are fixed
    (``adapt: static``) or minimise E[(∂/∂α_l)²] of a draw by Adam, after they have been used
    (dynamic).  The mean depends on neither, so this minimises the variance.  f and α [S, B, …].
    Terms: elbo, of the whole data set in nats.  State: λ, η and their optimizer.

    Source: Tucker et al. (2017); a special case of Grathwohl et al. (2018), eq. (9).
    """

    adapt: Literal["static", "dynamic"]
    temperature: PositiveFloat
    coefficient: float
    lr: PositiveFloat

    @property
    def learns(self) -> bool:
        return self.adapt == "dynamic"

    def init(self, module: BernoulliLayers[RowBatch], rng: Rng) -> Learnt[Relaxation]:
        like = next(module.parameters())
        return Learnt.begin(
            Relaxation(module.n_layers, self.temperature, self.coefficient, like), self.lr
        )
