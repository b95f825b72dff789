"""Antithetic pairs of binary draws, layer by layer: what ARM and DisARM share."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import RowBatch
from components.contracts.roles import Gradient
from components.contracts.streams import Rng
from components.gradients.bernoulli.layers import drawn_above, uniform, with_log_odds


class AntitheticPairs(Gradient[BernoulliLayers[RowBatch], RowBatch, None]):
    """∂/∂α E f(z) from two draws of each layer that share one uniform number, u and 1 − u, and f's difference between them.

    f = log p(x, z) − log q(z|x) of a row, [S, B]: it is never summed over rows before it is multiplied.  The layers below
    are a draw of the guide, the same for both; those above are drawn given each.  Where f depends on φ itself nothing is lost:
    E[∂ log q/∂φ] = 0.  Both draws of each layer are ones of q, and p learns from all: 2 L evaluations of f a sample."""

    needs: ClassVar[frozenset[str]] = frozenset({"bernoulli_layers"})
    unbiased: ClassVar[bool] = True

    n_samples: PositiveInt

    @staticmethod
    @abstractmethod
    def weight(u: Tensor, z: Tensor, other: Tensor, alpha: Tensor) -> Tensor:
        """What multiplies f(z) − f(z̃) in ∂/∂α, by draw and variable [S, B, D]."""

    def init(self, module: BernoulliLayers[RowBatch], rng: Rng) -> None:
        return None

    def estimate(
        self, module: BernoulliLayers[RowBatch], batch: RowBatch, rng: Rng, state: None
    ) -> tuple[list[Tensor | None], dict[str, Tensor], None]:
        S, scale = self.n_samples, batch.scale / self.n_samples
        below: list[Tensor] = []  # z_1 … z_{l−1}
        alphas, by_alpha, f = [], [], []
        joint = torch.zeros((), device=next(module.parameters()).device)
        for _ in range(module.n_layers):
            alpha = module.logits(batch, below).expand(S, -1, -1)
            with torch.no_grad():
                u, p = uniform(alpha.shape, alpha, rng), alpha.sigmoid()
                z, other = (u < p).to(alpha), (1 - u < p).to(alpha)  # the pair
                both = [torch.cat([layer, layer]) for layer in below]
                pair = drawn_above(module, batch, [*both, torch.cat([z, other])], rng)
                log_q = module.log_q(batch, pair)
            log_joint = module.log_joint(batch, pair)
            joint = joint + log_joint.sum() / (2 * module.n_layers)
            f.append(log_joint.detach() - log_q)  # [2 S, B]
            first, second = f[-1].chunk(2)
            alphas.append(alpha)
            by_alpha.append(scale * (first - second)[..., None] * self.weight(u, z, other, alpha.detach()))
            below.append(z)
        gradients = with_log_odds(module, scale * joint, alphas, by_alpha)
        elbo = batch.scale * torch.cat(f).mean(0).sum()
        return gradients, {"elbo": elbo}, None
