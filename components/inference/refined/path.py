"""The path from draws z_0 of a guide to z_T, and the value used as entropy of z_T."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from components.errors import NumericalError
from components.inference.refined.kernels import (
    KernelStep,
    Target,
    interaction,
    negative_score,
    slope,
)
from components.maths.cholesky import half_log_det

Entropy = Literal["initial", "joint", "gaussian", "fokker_planck", "jacobian"]


@dataclass(frozen=True)
class Begun:
    """Draws of q_0 for B posteriors."""

    z: Tensor  # z_0 [S, B, D]
    entropy: Tensor  # H(q_0) [B]; 0 for a point mass
    target: Target  # log p(x, z), up to terms that do not depend on z
    # factor of the objective's sum over B: number of rows that each term represents
    weight: float


def hessian(gradient: Tensor, z: Tensor, graph: bool) -> Tensor:
    """∇² log p(z_sb) [S, B, D, D] from the gradient [S, B, D] at z, by D backward passes for all
    (s, b)."""
    D = z.shape[-1]
    rows = [
        torch.autograd.grad(gradient[..., d].sum(), z, create_graph=graph, retain_graph=True)[0]
        for d in range(D)
    ]
    return torch.stack(rows, -2)


@dataclass(frozen=True)
class Refinement:
    """T steps of a kernel with an entropy, differentiated fully (``full``) or with Δz held fixed.

    z_t = z_{t−1} + Δz or z_{t−1} + ⊥(Δz): one value, two gradients.

        initial        H(q_0)
        gaussian       −log N(z_T; z_T, σ_0²) = H(q_0) − D/2
        joint          H(q_0) + Σ_t H(q(z_t | z_{t−1})):  of z_0, …, z_T together
        fokker_planck  H(q_0), where kernels follow ∇log p − ∇log q_t
        jacobian       H(q_0) + Σ_t log|det(I + η∇² log p(z_{t−1}))|:  of z_T itself, exact

    H(q_0) in closed form replaces −log q_0(z_0); it is the mean of that term.

    Source: Gallego (2021), eqs. (2.10)-(2.13) and section 2.4 (Approximating the entropy
    term), where the entropy of VIS-P lacks a minus; ``jacobian`` by the change of variables
    z_{t−1} ↦ z_t.
    """

    move: KernelStep
    entropy: Entropy
    full: bool

    def __call__(
        self, begun: Begun, eta: Tensor, steps: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """z_T [S, B, D], and the entropy [S, B] or [B].

        Raises NumericalError if η is too large for a step of ``jacobian`` to be invertible."""
        z = begun.z
        target = begun.target
        S, _, D = z.shape
        entropy = begun.entropy - 0.5 * D if steps and self.entropy == "gaussian" else begun.entropy
        for _ in range(steps):
            point = z if self.full else z.detach()
            if self.entropy == "jacobian":
                delta, log_det = self._gradient_and_log_det(target, point, eta)
                entropy = entropy + log_det
            else:
                delta = self.move.delta(
                    lambda moved: self._field(target, moved), point, eta, generator
                )
            if self.entropy == "joint":
                entropy = entropy + self._transition_entropy(point, eta, D, S)
            z = z + (delta if self.full else delta.detach())
        return z, entropy

    def _field(self, target: Target, z: Tensor) -> Tensor:
        gradient = slope(target, z, self.full)
        return (
            gradient + negative_score(z, self.move.bandwidth)
            if self.entropy == "fokker_planck"
            else gradient
        )

    def _gradient_and_log_det(
        self, target: Target, z: Tensor, eta: Tensor
    ) -> tuple[Tensor, Tensor]:
        """η∇log p(z) [S, B, D] and log det(I + η∇² log p(z)) [S, B]."""
        with torch.enable_grad():
            z = z if self.full and z.requires_grad else z.detach().requires_grad_()
            gradient = slope(target, z, True)
            curvature = hessian(gradient, z, self.full)
        eye = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
        # det(I + diag(η) H) = det(I + diag(√η) H diag(√η)), which is symmetric
        scaled = eta * curvature if eta.dim() == 0 else torch.outer(eta, eta).sqrt() * curvature
        factor, failed = torch.linalg.cholesky_ex(eye + scaled)
        if failed.any():
            largest = float(eta.max())
            steepest = -float(torch.linalg.eigvalsh(scaled.detach()).min()) / largest
            raise NumericalError(
                f"inference.eta={largest:g} is too large for entropy=jacobian: −∇² log p has the "
                f"eigenvalue {steepest:.3g} at a draw, and the step is not invertible above 1/η",
                f"lower inference.eta (below {1 / steepest:.2g} here), or use another "
                f"inference.entropy",
            )
        log_det = 2 * half_log_det(factor)
        return eta * gradient, log_det if self.full else log_det.detach()

    def _transition_entropy(self, z: Tensor, eta: Tensor, D: int, S: int) -> Tensor:
        """Entropy H(q(z_t | z_{t−1})) of a particle, [] or [B]: the entropy of N(·, 2η I).

        With repulsion it is 1/S of the entropy of N(·, (2η/S) K ⊗ I).
        """
        entropy = 0.5 * D * (1 + math.log(4 * math.pi) + eta.log().mean())
        if self.move.name == "sgld":
            return entropy
        K = interaction(z, self.move.bandwidth).K
        assert K is not None
        jitter = self.move.jitter * torch.eye(S, dtype=z.dtype, device=z.device)
        return entropy - 0.5 * D * math.log(S) + 0.5 * D / S * torch.linalg.slogdet(K + jitter)[1]
