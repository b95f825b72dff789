"""RELAX: the score function with a free function of a relaxed layer as control variate."""

from __future__ import annotations

from pydantic import PositiveFloat, PositiveInt

from components.contracts.capabilities import BernoulliLayers, RowGuide
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.gradients.bernoulli.learning import RowLayers, Surrogates
from components.gradients.bernoulli.relaxation import RelaxationGradient
from components.gradients.learnt import Learnt
from components.registry import register


@register("gradient", "relax")
class RELAX(RelaxationGradient[RowLayers, Surrogates]):
    """RELAX: a network of the relaxed layer is the control variate, one for each layer.

    Only values of f are needed.

        ∂/∂α_l E f = E[(f(z) − c_φ(ζ̃)) (z_l − σ(α_l)) + ∂/∂α_l (c_φ(ζ) − c_φ(ζ̃))]
        ζ = α_l + logit u,   z_l = 1[ζ > 0],   ζ̃ ~ ζ | z_l
        c_φ(ζ) = r_l(x, z_1, …, z_{l−1}, ζ)

    φ minimises E[(∂/∂α_l)²] of a draw by Adam, after it has been used.  The mean does not depend on
    φ, so this minimises the variance.  Initially c_φ = 0, which is Reinforce. f and α [S, B, …].
    Terms: elbo, of the whole data set in nats.  State: the networks and their optimizer.

    Source: Grathwohl et al. (2018), eqs. (7) and (9); for layers, each given the one below,
    our derivation.
    """

    requires = Requirements(capabilities={BernoulliLayers, RowGuide})

    widths: list[PositiveInt]
    lr: PositiveFloat

    def init(self, module: RowLayers, rng: Rng) -> Learnt[Surrogates]:
        return Learnt.begin(Surrogates(module, self.widths, rng), self.lr)
