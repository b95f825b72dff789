"""Differentiable kernels that refine draws z [S, B, D] of a guide.

There are S particles for each of B posteriors.  A target is a log density
[S, B, D] -> [S, B], and its (s, b)-th value depends only on z_sb.  Particles of the
same posterior interact through their kernel matrix; particles of different posteriors
never do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from components.errors import ConfigMismatchError
from components.inference.sgmcmc.repulsion import Bandwidth
from components.maths.exponential.standard_draws import normal_like
from components.maths.particles.interactions import Interaction, among, kernel

Kernel = Literal["sgd", "sgld", "svgd", "sgld_r", "hmc"]
Target = Callable[[Tensor], Tensor]  # [S, B, D] -> [S, B]
Field = Callable[[Tensor], Tensor]  # [S, B, D] -> [S, B, D]: drift of a particle


def slope(target: Target, z: Tensor, graph: bool) -> Tensor:
    """∇ log p(z) [S, B, D].

    Args:
        graph: keep the graph, so that the result can be differentiated with respect to z and to all
        inputs of the target.

    Raises:
        ConfigMismatchError: the target cannot be differentiated.
    """
    with torch.enable_grad():
        z = z if graph and z.requires_grad else z.detach().requires_grad_()
        value = target(z)
        if not value.requires_grad:
            raise ConfigMismatchError(
                "inference=vis requires the gradient of the log joint, which this model does not "
                "provide; use inference=gaussian_vi inference.gradient=reinforce"
            )
        (gradient,) = torch.autograd.grad(value.sum(), z, create_graph=graph)
    return gradient


def swap_draws_and_rows(z: Tensor) -> Tensor:
    """Transpose [S, B, D] -> [B, S, D], and back."""
    return z.transpose(0, 1)


def interaction(z: Tensor, bandwidth: Bandwidth) -> Interaction:
    """Kernel interaction among the S particles of each posterior."""
    return among(swap_draws_and_rows(z).flatten(0, 1), z.shape[1], bandwidth)


def negative_score(z: Tensor, bandwidth: Bandwidth) -> Tensor:
    """−∇log q of the density q from which z are draws, by the blob method, [S, B, D].

        −Σ_n ∇K_mn / Σ_n K_mn − Σ_l ∇K_ml / Σ_n K_nl
        ∇ = ∇_{z_m},  K_mn = exp(−‖z_m − z_n‖²/h)

    It is the gradient of −δ/δq E_q[log(q∗K)]: the first term is the gradient of −log(q∗K),
    the second compensates for the smoothing.  The first term without the second underestimates the
    spread.

    Source: Gallego (2021), appendix 2.A, in which the last display sums ∇K(z_m, z_n) over
    k, and the first lacks a minus; Carrillo, Craig and Patacchini (2019), eq. (14).
    """
    z = swap_draws_and_rows(z)  # [B, S, D]
    K, h = kernel(z, bandwidth)  # [B, S, S], [B]
    density = K.sum(-1, keepdim=True)  # Σ_n K_mn [B, S, 1]
    smoothed = z - (K @ z) / density
    corrected = (K @ (1 / density)) * z - K @ (z / density)
    return swap_draws_and_rows((smoothed + corrected) * (2 / h)[:, None, None])


@dataclass(frozen=True)
class KernelStep:
    """One step of a kernel: Δz of particles at z, with step size η.

        sgd     η ∇log p(z)
        sgld    η ∇log p(z) + N(0, 2η I)
        svgd    (η/S) Σ_l [k(z_l, z_i) ∇log p(z_l) + ∇_{z_l} k(z_l, z_i)]
        sgld_r  the same + N(0, (2η/S) K ⊗ I)
        hmc     ``leapfrog_steps`` leapfrog steps of size η from a momentum r ~ N(0, I); nothing is rejected

    Source: Gallego (2021), section 2.4 (The sampler), eqs. (2.1), (2.4), (2.7); Neal (2011), eqs.
    (2.28)-(2.30)."""

    name: Kernel
    bandwidth: Bandwidth
    leapfrog_steps: int
    jitter: float

    def delta(self, field: Field, z: Tensor, eta: Tensor, generator: torch.Generator) -> Tensor:
        """Δz [S, B, D]; ``field`` is ∇log p or its replacement."""
        if self.name == "hmc":
            return self._leapfrog(field, z, eta, generator)
        gradient = field(z)
        if self.name == "sgd":
            return eta * gradient
        if self.name == "sgld":
            return eta * gradient + (2 * eta).sqrt() * normal_like(z, generator)
        particles = interaction(z, self.bandwidth)
        drift = eta * (
            particles.average(swap_draws_and_rows(gradient).flatten(0, 1)) + particles.correction()
        )
        if self.name == "sgld_r":
            drift = drift + (2 * eta).sqrt() * particles.noise(generator, self.jitter)[0]
        return swap_draws_and_rows(drift.unflatten(0, (z.shape[1], len(z))))

    def _leapfrog(self, field: Field, z: Tensor, eta: Tensor, generator: torch.Generator) -> Tensor:
        r = normal_like(z, generator) + 0.5 * eta * field(z)
        position = z + eta * r
        for _ in range(self.leapfrog_steps - 1):
            r = r + eta * field(position)
            position = position + eta * r
        return position - z
