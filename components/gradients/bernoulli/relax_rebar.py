"""RELAX on top of REBAR: a network learns the residual of the relaxation."""

from __future__ import annotations

from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities import BernoulliLayers, RowGuide
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.gradients.bernoulli.learning import RowLayers, Surrogates
from components.gradients.bernoulli.relaxation import Relaxation, RelaxationGradient
from components.gradients.learnt import Learnt
from components.registry import register


class Both(nn.Module):
    """Temperatures and coefficients, and networks."""

    def __init__(self, relaxation: Relaxation, surrogates: Surrogates):
        super().__init__()
        self.relaxation = relaxation
        self.surrogates = surrogates

    def forward(
        self, module: RowLayers, batch: RowBatch, below: list[Tensor], zeta: Tensor
    ) -> Tensor:
        relaxed: Tensor = self.relaxation(module, batch, below, zeta)
        return relaxed + self.surrogates(module, batch, below, zeta)


@register("gradient", "relax_rebar")
class RelaxREBAR(RelaxationGradient[RowLayers, Both]):
    """RELAX on top of REBAR: the control variate is f at the relaxed layer plus a network of it,
    layer by layer.

        ∂/∂α_l E f = E[(f(z) − c_φ(ζ̃)) (z_l − σ(α_l)) + ∂/∂α_l (c_φ(ζ) − c_φ(ζ̃))]
        c_φ(ζ) = η_l f(z_1, …, z_{l−1}, σ(ζ/λ_l), σ(α_{l+1}), …) + r_l(x, z_1, …, z_{l−1}, ζ)

    ζ and ζ̃ are as in RELAX.  φ = (λ, η, r) minimises E[(∂/∂α_l)²] of a draw by Adam, after it has
    been used.  Initially r = 0, which is REBAR.  f and α [S, B, …].  Terms: elbo, of the whole data
    set in nats.  State: φ and its optimizer.

    Source: Grathwohl et al. (2018), eqs. (7) and (9) and section 3.3; Tucker et al. (2017)."""

    requires = Requirements(capabilities={BernoulliLayers, RowGuide})

    temperature: PositiveFloat
    coefficient: float
    widths: list[PositiveInt]
    lr: PositiveFloat

    def init(self, module: RowLayers, rng: Rng) -> Learnt[Both]:
        like = next(iter(module.parameters()))
        relaxation = Relaxation(module.n_layers, self.temperature, self.coefficient, like)
        return Learnt.begin(Both(relaxation, Surrogates(module, self.widths, rng)), self.lr)
