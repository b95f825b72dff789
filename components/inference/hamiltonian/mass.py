"""The mass matrix M of Hamiltonian dynamics, diagonal or dense: momenta, velocities and kinetic
energies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from components.errors import NumericalError
from components.maths.exponential.standard_draws import normal_like

Shape = Literal["identity", "diagonal", "dense"]


@dataclass(frozen=True)
class Mass:
    """M represented by its inverse Σ, an estimate of the target's covariance, and a root R with RᵀR
    = M.

    Both are [P] if M is diagonal and [P, P] if it is dense."""

    inverse: Tensor
    root: Tensor

    @staticmethod
    def of(covariance: Tensor) -> Mass:
        """Mass with a given covariance [P] or [P, P] as its inverse.

        Raises NumericalError if the covariance is not positive definite.
        """
        if covariance.dim() == 1:
            return Mass(covariance, covariance.rsqrt())
        factor, failed = torch.linalg.cholesky_ex(covariance)
        if failed:
            raise NumericalError(
                "the covariance of the warm-up draws is not positive definite", "inference.mass"
            )
        eye = torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
        root = torch.linalg.solve_triangular(factor, eye, upper=False)  # Σ = L Lᵀ, R = L⁻¹
        # Row-major, as after loading a checkpoint: products in column-major order round
        # differently.
        return Mass(covariance.contiguous(), root.contiguous())

    def momentum(self, like: Tensor, generator: torch.Generator) -> Tensor:
        """Draw r ~ N(0, M) for each row of ``like`` [C, P]."""
        z = normal_like(like, generator)
        return z * self.root if self.root.dim() == 1 else z @ self.root  # cov(Rᵀz) = M, [C, P]

    def velocity(self, r: Tensor) -> Tensor:
        """M⁻¹ r; r [..., P] -> [..., P]."""
        return r * self.inverse if self.inverse.dim() == 1 else r @ self.inverse

    def move(self, theta: Tensor, r: Tensor, eps: float) -> Tensor:
        """θ + ε M⁻¹ r in one pass; [C, P]."""
        if self.inverse.dim() == 1:
            return torch.addcmul(theta, r, self.inverse, value=eps)
        return torch.addmm(theta, r, self.inverse, alpha=eps)

    def kinetic(self, r: Tensor, velocity: Tensor | None = None) -> Tensor:
        """½ rᵀ M⁻¹ r; r [C, P] -> [C]; ``velocity`` is M⁻¹ r if already computed."""
        return 0.5 * (r * (self.velocity(r) if velocity is None else velocity)).sum(-1)

    def square(self, x: Tensor) -> Tensor:
        """‖x‖² = xᵀ M x of positions, which is independent of their scales; x [C, P] -> [C]."""
        white = x * self.root if self.root.dim() == 1 else x @ self.root.T
        return white.square().sum(-1)

    @property
    def speed(self) -> float:
        """√(tr M⁻¹/P), the root mean square of a coordinate's velocity."""
        inverse = self.inverse if self.inverse.dim() == 1 else self.inverse.diagonal()
        return float(inverse.mean().sqrt())
