"""Many small systems of particles simulated as one, and the literal kernel of a pair of
particles."""

from __future__ import annotations

import torch
from support.runs.configured import normal
from torch import Tensor

APART = 1000.0


class Systems:
    """S systems of L particles of N(0, I_P), separated along an additional coordinate beyond the
    reach of the kernel.

    The target is periodic in that coordinate and standard normal about every multiple of ``APART``:
    K is block-diagonal, and each block is one independent system. D = K/(S L) only requires a step
    S times as large.
    """

    def __init__(
        self,
        systems: int,
        particles: int,
        dim: int = 2,
        start_sd: float = 1.0,
        start_mean: float = 0.0,
    ):
        self.systems = systems
        self.particles = particles
        self.start_sd = start_sd
        self.start_mean = start_mean
        self.dim = dim + 1
        self.names = [f"x{j}" for j in range(dim + 1)]

    def constrain(self, theta: Tensor) -> Tensor:
        """Coordinates relative to their own centre: all of them are N(0, 1) under the target."""
        last = theta[:, -1:]
        return torch.cat([theta[:, :-1], last - APART * (last / APART).round()], 1)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        z = self.start_mean + self.start_sd * normal(generator, n, self.dim)
        z[:, -1] += APART * (torch.arange(n) // self.particles)
        return z

    def log_likelihood(self, theta: Tensor, batch) -> Tensor:
        return theta.new_zeros(len(theta), 0)

    def log_prior(self, theta: Tensor) -> Tensor:
        return -0.5 * self.constrain(theta).square().sum(1)

    def means(self, draws, power: int) -> Tensor:
        """Each system's own mean of xᵖ over its particles and draws, [S, P + 1]."""
        return (draws.values**power).unflatten(0, (self.systems, self.particles)).mean((1, 2))

    def z(self, draws) -> float:
        """Largest |z| of E[x], E[x²] and L E[x̄²], with x̄ a system's mean at one time, for
        independent systems."""
        # [S, N, P + 1]
        together = draws.values.unflatten(0, (self.systems, self.particles)).mean(1)
        collective = self.particles * together.square().mean(1)
        worst = 0.0
        for means, exact in (
            (self.means(draws, 1), 0.0),
            (self.means(draws, 2), 1.0),
            (collective, 1.0),
        ):
            worst = max(
                worst,
                float(((means.mean(0) - exact) / (means.std(0) / self.systems**0.5)).abs().max()),
            )
        return worst


def k(a: Tensor, b: Tensor, h: float) -> Tensor:
    """exp(−‖a − b‖²/h) of two particles [P]."""
    return torch.exp(-((a - b) ** 2).sum() / h)


def gradient_of_k(a: Tensor, b: Tensor, h: float) -> Tensor:
    """∇_a k(a, b) [P], by autograd."""
    a = a.clone().requires_grad_()
    return torch.autograd.grad(k(a, b, h), a)[0]


def gram(theta: Tensor, h: float) -> Tensor:
    """K of all pairs of particles, pair by pair; differentiable, [L, L]."""
    return torch.stack([torch.stack([k(a, b, h) for b in theta]) for a in theta])


def force(theta: Tensor, gradient: Tensor, h: float, sign: float = 1.0) -> Tensor:
    """Σ_l [k(z_l, z_i) ∇log π(z_l) ± ∇_{z_l} k(z_l, z_i)] of every particle i, pair by pair; [L,
    P]."""
    rows = []
    for z_i in theta:
        pairs = zip(theta, gradient, strict=True)
        rows.append(
            sum(k(z_l, z_i, h) * g_l + sign * gradient_of_k(z_l, z_i, h) for z_l, g_l in pairs)
        )
    return torch.stack(rows)
