"""Antithetic draws of binary variables, layer by layer: shared code of ARM, DisARM and ARMS."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.gradients.bernoulli.layers import (
    assemble_guide_gradients,
    sample_upper_layers,
    uniform,
)
from components.gradients.by_parameter import Estimate, StatelessGradient


class Antithetic(StatelessGradient[BernoulliLayers[RowBatch]]):
    """∂/∂α E f(z) from the differences of f between K dependent draws of each layer.

    The uniform numbers of the draws depend on each other.  f = log p(x, z) − log q(z|x) of
    a row, [K, C, B], which is multiplied row by row.  The layers below are a draw from the guide,
    the same for all K; the layers above are drawn given each of the K.  C such chains run in
    parallel.  The dependence of f itself on φ contributes
    nothing: E[∂ log q/∂φ] = 0.  Each draw of each layer is a draw from q, and p learns from all
    draws, or only from the draws of the first layer if the others have few draws below them.  Cost:
    L K C evaluations of f.
    """

    requires = Requirements(capabilities={BernoulliLayers})
    unbiased = True
    first_alone: ClassVar[bool]  # p, and the reported bound, use only the first layer's draws

    n_samples: PositiveInt

    @property
    @abstractmethod
    def chains(self) -> int:
        """Number of chains C."""

    @abstractmethod
    def draw_coupled(self, alpha: Tensor, rng: Rng) -> tuple[Tensor, Tensor]:
        """Uniform numbers and the resulting draws, [K, C, B, D] each, for log odds α [C, B, D]."""

    @abstractmethod
    def slope(self, u: Tensor, z: Tensor, f: Tensor, alpha: Tensor) -> Tensor:
        """An estimate of ∂/∂α E f [C, B, D] from u and z [K, C, B, D] and f [K, C, B]."""

    def estimate(
        self, module: BernoulliLayers[RowBatch], batch: RowBatch, rng: Rng, state: None
    ) -> Estimate[None]:
        scale = batch.scale / self.chains
        below: list[Tensor] = []  # z_1 … z_{l−1}, [C, B, D] each
        alphas = []
        by_alpha = []
        f = []
        joint = []
        for _ in range(module.n_layers):
            alpha = module.logits(batch, below).expand(self.chains, -1, -1)
            with torch.no_grad():
                u, z = self.draw_coupled(alpha, rng)
                same = [layer.repeat(len(z), 1, 1) for layer in below]
                draws = sample_upper_layers(module, batch, [*same, z.flatten(0, 1)], rng)
                log_q = module.log_q(batch, draws)
            log_joint = module.log_joint(batch, draws)
            joint.append(log_joint.mean(0).sum())
            f.append((log_joint.detach() - log_q).unflatten(0, z.shape[:2]))  # [K, C, B]
            alphas.append(alpha)
            by_alpha.append(scale * self.slope(u, z, f[-1], alpha.detach()))
            below.append(z[0])
        selection = slice(1) if self.first_alone else slice(None)
        gradients = assemble_guide_gradients(
            module, batch.scale * torch.stack(joint[selection]).mean(), alphas, by_alpha
        )
        elbo = batch.scale * torch.stack(f[selection]).flatten(0, 2).mean(0).sum()
        return gradients, {"elbo": elbo}, None


class AntitheticPairs(Antithetic):
    """Pairs from one uniform number for each variable, used as u and as 1 − u; S pairs of each
    layer, one chain each."""

    first_alone = False

    @staticmethod
    @abstractmethod
    def weight(u: Tensor, z: Tensor, other: Tensor, alpha: Tensor) -> Tensor:
        """Factor of f(z) − f(z̃) in ∂/∂α, by draw and variable [S, B, D]."""

    @property
    def chains(self) -> int:
        return self.n_samples

    def draw_coupled(self, alpha: Tensor, rng: Rng) -> tuple[Tensor, Tensor]:
        first = uniform(alpha.shape, alpha, rng)
        u = torch.stack([first, 1 - first])
        return u, (u < alpha.sigmoid()).to(alpha)

    def slope(self, u: Tensor, z: Tensor, f: Tensor, alpha: Tensor) -> Tensor:
        return (f[0] - f[1])[..., None] * self.weight(u[0], z[0], z[1], alpha)
