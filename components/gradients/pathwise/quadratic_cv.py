"""The reparameterisation gradient minus the gradient of a learned quadratic surrogate."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities import LocationScale
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate
from components.gradients.learnt import Learnt
from components.gradients.pathwise.bound import whole_gradient
from components.gradients.pathwise.surrogate import detach_affine, mean_path, path
from components.registry import register


class Quadratic(nn.Module):
    """b·(θ − m) + ½ (θ − m)ᵀ A (θ − m), A [D, D] symmetric or diagonal; initially 0."""

    def __init__(self, zeros: Tensor, diagonal: bool):
        super().__init__()
        self.b = nn.Parameter(zeros.clone())
        self.a = nn.Parameter(zeros.clone() if diagonal else zeros.diag())

    @property
    def curvature(self) -> Tensor:
        """A [D, D]."""
        return self.a.diag() if self.a.dim() == 1 else 0.5 * (self.a + self.a.T)


@register("gradient", "quadratic_cv")
class QuadraticCV(Gradient[LocationScale[RowBatch], RowBatch, Learnt[Quadratic]]):
    """Quadratic control variate: log p is replaced by a quadratic trained to minimise the variance.

        g̃ = ĝ − C_v,   C_v = ∇_φ N/B Σ_b {S⁻¹ Σ_s f̂_v(θ(ε_sb)) − E f̂_v(θ)},   f̂_v(θ) = b·(θ − m) + ½ (θ − m)ᵀ A (θ − m)
        v ← v − lr · Adam(∇_v ‖ĝ − C_v‖²),   v = (b, A)

    m is held fixed in f̂; E f̂ = b·(m_φ − m) + ½ (m_φ − m)ᵀ A (m_φ − m) + ½ tr(L_φᵀ A L_φ).
    ‖ĝ − C_v‖² has the mean Tr Cov[g̃] up to a constant; v is used before it is updated with this
    noise.  All rows share one surrogate, in units of N/B; ``curvature: diagonal`` stores D instead
    of D² numbers of A.  θ [S, B, D].

    Source: Geffner and Domke (2020), section 3 and Algorithm 1."""

    requires = Requirements(capabilities={LocationScale})
    unbiased = True

    n_samples: PositiveInt
    curvature: Literal["full", "diagonal"]
    lr: PositiveFloat

    def init(self, module: LocationScale[RowBatch], rng: Rng) -> Learnt[Quadratic]:
        zeros = next(iter(module.parameters())).detach().new_zeros(module.noise_dim)
        surrogate = Quadratic(zeros, self.curvature == "diagonal")
        return Learnt.begin(surrogate, self.lr)

    def estimate(
        self, module: LocationScale[RowBatch], batch: RowBatch, rng: Rng, state: Learnt[Quadratic]
    ) -> Estimate[Learnt[Quadratic]]:
        noise = module.draw_noise(batch, self.n_samples, rng.noise)
        raw_gradients, terms = whole_gradient(module, batch, noise)
        q = module.location_scale(batch)
        b = state.control.b
        A = state.control.curvature
        AL = A @ detach_affine(q)[1]  # [B or 1, D, D]
        # ∇f̂ [S, B, D]
        slope = b + torch.einsum("bij,sbj->sbi", AL.expand(noise.shape[1], -1, -1), noise)
        mean = mean_path(q, b.expand(batch.n_rows, -1), AL.expand(batch.n_rows, -1, -1))
        value = batch.scale * (path(q, noise, slope) - mean)
        corrections = torch.autograd.grad(
            value, list(module.parameters()), create_graph=True, allow_unused=True
        )
        controlled = [
            g if g is None or c is None else g - c
            for g, c in zip(raw_gradients, corrections, strict=True)
        ]
        # update after use: the surrogate must be independent of the noise that it corrects
        residuals = [
            g
            for g, c in zip(controlled, corrections, strict=True)
            if g is not None and c is not None
        ]
        state.optimizer.descend(torch.stack([rest.square().sum() for rest in residuals]).sum())
        return [None if g is None else g.detach() for g in controlled], terms, state
