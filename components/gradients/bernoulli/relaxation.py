"""Control variates from relaxed binary layers, layer by layer: shared code of REBAR and RELAX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient
from components.contracts.streams import Rng
from components.gradients.bernoulli.layers import assemble_guide_gradients, logistic, uniform
from components.gradients.bernoulli.learning import descend
from components.gradients.by_parameter import Estimate
from components.gradients.learnt import C, Learnt

M = TypeVar("M", bound=BernoulliLayers[RowBatch])


class Relaxation(nn.Module):
    """A temperature λ and a coefficient η for each layer."""

    def __init__(self, layers: int, temperature: float, coefficient: float, like: Tensor):
        super().__init__()
        self.log_temperature = nn.Parameter(torch.full((layers,), temperature).log().to(like))
        self.coefficient = nn.Parameter(torch.full((layers,), coefficient).to(like))

    def forward(
        self,
        module: BernoulliLayers[RowBatch],
        batch: RowBatch,
        below: Sequence[Tensor],
        zeta: Tensor,
    ) -> Tensor:
        """η f(z_1, …, z_{l−1}, σ(ζ/λ), σ(α_{l+1}), …) [S, B]."""
        index = len(below)
        layers = [*below, (zeta / self.log_temperature[index].exp()).sigmoid()]
        while len(layers) < module.n_layers:
            layers.append(module.logits(batch, layers).sigmoid())
        f = module.log_joint(batch, tuple(layers)) - module.log_q(batch, tuple(layers))
        return self.coefficient[index] * f


@dataclass(frozen=True)
class RelaxedDraws:
    """Draws of all layers, [S, B, D_l] each, and the noise of their relaxation, all detached."""

    alphas: list[Tensor]
    u: list[Tensor]
    z: list[Tensor]
    v: list[Tensor]  # noise for redrawing u given z
    f: Tensor  # [S, B]


def conditional(z: Tensor, alpha: Tensor, v: Tensor) -> Tensor:
    """ζ̃ ~ ζ | z, a smooth function of α."""
    zero = (-alpha).sigmoid()  # P(z = 0)
    return alpha + logistic(torch.where(z > 0, zero + v * (1 - zero), v * zero))


class RelaxationGradient(Gradient[M, RowBatch, Learnt[C]]):
    """∂/∂α_l E f(z) by the score function, with a relaxed layer as control variate.

    The mean of the control variate c of a relaxed layer has a pathwise derivative.

        (f(z) − c(ζ̃)) (z_l − σ(α_l)) + ∂/∂α_l (c(ζ) − c(ζ̃))
        ζ = α_l + logit u,   z_l = 1[ζ > 0],   ζ̃ ~ ζ | z_l

    c is any smooth function of ζ_l, given x and the draws below l, that does not depend on u.  The
    learned module, called with the model, its rows, the layers below and ζ_l [2 S, B, D], returns
    c(ζ_l) [2 S, B].
    """

    requires = Requirements(capabilities={BernoulliLayers})
    unbiased = True

    n_samples: PositiveInt

    @property
    def learns(self) -> bool:
        return True

    def estimate(
        self, module: M, batch: RowBatch, rng: Rng, state: Learnt[C]
    ) -> Estimate[Learnt[C]]:
        alphas: list[Tensor] = []
        u: list[Tensor] = []
        z: list[Tensor] = []
        for _ in range(module.n_layers):
            alphas.append(module.logits(batch, z).expand(self.n_samples, -1, -1))
            with torch.no_grad():
                u.append(uniform(alphas[-1].shape, alphas[-1], rng))
                z.append((alphas[-1] + logistic(u[-1]) > 0).to(alphas[-1]))
        v = [uniform(alpha.shape, alpha, rng) for alpha in alphas]
        log_joint = module.log_joint(batch, tuple(z))
        with torch.no_grad():
            f = log_joint - module.log_q(batch, tuple(z))  # [S, B]
        draws = RelaxedDraws([alpha.detach() for alpha in alphas], u, z, v, f)
        by_alpha = self._relaxed_gradients(module, batch, state.control, draws)
        scale = batch.scale / self.n_samples
        gradients = assemble_guide_gradients(
            module, scale * log_joint.sum(), alphas, [scale * g for g in by_alpha]
        )
        if self.learns:
            descend(state, by_alpha)
        return gradients, {"elbo": batch.scale * f.mean(0).sum()}, state

    def _relaxed_gradients(
        self, module: M, batch: RowBatch, part: C, draws: RelaxedDraws
    ) -> list[Tensor]:
        """∂/∂α_l of each draw, unscaled [S, B, D_l], as functions of any learned parameters."""
        gradients = []
        for index, (z, u, v) in enumerate(zip(draws.z, draws.u, draws.v, strict=True)):
            alpha = draws.alphas[index].clone().requires_grad_()
            zeta = torch.cat([alpha + logistic(u), conditional(z, alpha, v)])  # ζ, ζ̃ [2 S, B, D]
            below = [torch.cat([layer, layer]) for layer in draws.z[:index]]
            free, conditioned = part(module, batch, below, zeta).chunk(2)
            (slope,) = torch.autograd.grad(
                (free - conditioned).sum(), alpha, create_graph=self.learns
            )
            score = z - draws.alphas[index].sigmoid()
            gradients.append((draws.f - conditioned)[..., None] * score + slope)
        return gradients
