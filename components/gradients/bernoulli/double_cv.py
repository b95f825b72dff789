"""Double control variates: leave-one-out with a linear approximation of f at the other draws."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import RowBatch
from components.contracts.streams import Rng
from components.gradients.bernoulli.leave_one_out import (
    DrawsWithSlope,
    LeaveOneOut,
    leave_one_out_mean,
)
from components.gradients.learnt import Learnt
from components.registry import register


class LayerCoefficients(nn.Module):
    """a_l, one for each layer."""

    def __init__(self, layers: int, coefficient: float, like: Tensor):
        super().__init__()
        self.coefficient = nn.Parameter(torch.full((layers,), coefficient).to(like))


@register("gradient", "double_cv")
class DoubleCV(LeaveOneOut[LayerCoefficients]):
    """Double control variates: f minus its first-order terms, in Reinforce and in its baseline,
    plus the mean of these terms.

        ∂/∂α_l E f = E[S⁻¹ Σ_s (h_s − (S − 1)⁻¹ Σ_{j≠s} h_j) (z_l^s − μ_l^s) + a_l ∇̄_l^s ⊙ μ_l^s (1 − μ_l^s)]
        h_s = f(z^s) − Σ_l a_l ∇̄_l^sᵀ (z_l^s − μ_l^s),   ∇̄_l^s = (S − 1)⁻¹ Σ_{j≠s} ∂f/∂z_l (z^j),   μ_l = σ(α_l)

    The derivatives are taken at the other draws, which are independent of z^s, and the mean of (z_l
    − μ_l)² is known; the terms of other layers have mean 0 given the layers below them.  a_l
    minimises E[(∂/∂α)²] by Adam, after it has been used (it is fixed if ``lr`` is 0); a = 0 is
    leave-one-out.  f [S, B], α, z, ∇̄ [S, B, D_l].  Terms: elbo, of the whole data set in nats.
    State: a and its optimizer.

    Raises:
        ConfigError: there is only one draw.

    Source: Titsias and Shi (2022); for layers, each given the one below, our derivation."""

    coefficient: float

    def init(self, module: BernoulliLayers[RowBatch], rng: Rng) -> Learnt[LayerCoefficients]:
        return Learnt.begin(
            LayerCoefficients(module.n_layers, self.coefficient, next(iter(module.parameters()))),
            self.lr,
        )

    def by_alpha(self, control: LayerCoefficients, draws: DrawsWithSlope) -> list[Tensor]:
        a = control.coefficient
        h = draws.f
        corrections = []
        centred = [z - mu for z, mu in zip(draws.z, draws.probability, strict=True)]
        for index, mu in enumerate(draws.probability):
            weighted = a[index] * leave_one_out_mean(draws.slope[index])  # a_l ∇̄_l^s
            h = h - (weighted * centred[index]).sum(-1)
            corrections.append(weighted * mu * (1 - mu))
        signal = (h - leave_one_out_mean(h))[..., None]
        return [signal * layer + mean for layer, mean in zip(centred, corrections, strict=True)]
