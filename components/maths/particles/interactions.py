"""Particle repulsion: RBF kernel matrix, repulsive drift and the matching noise.

L particles z_1 … z_L in ℝᴾ are one Markov chain on ℝᴸᴾ with target Π_l π(z_l).  In the
recipe of Ma et al. (2015),

    dz = (D ∇log π + Γ) dt + N(0, 2 D dt)
    D = K/L ⊗ I,  K_il = k(z_i, z_l),  Γ_i = (1/L) Σ_l ∇_{z_l} k(z_l, z_i),

leaves that target invariant.  For k(z, z′) = exp(−‖z − z′‖²/h) the correction
Γ_i = (2/hL) Σ_l k(z_l, z_i)(z_i − z_l) points away from the other particles.  All
operations are matrix products of [L, L] with [L, P]: no [L, L, P] tensor is created.  R
replicates are R such chains without interaction between replicates: [R, L, L] with
[R, L, P].

K/L has eigenvalues between 0 and 1, and its trace is 1: without interaction particles move as in
SGLD with step ε/L; particles at the same point move together with step ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from components.maths.cholesky import jittered_cholesky
from components.maths.exponential.standard_draws import normal_like

Bandwidth = float | Literal["median"]  # h of k


def square_distances(theta: Tensor) -> Tensor:
    """‖z_i − z_l‖² of particles [(R,) L, P], as ‖z_i‖² + ‖z_l‖² − 2 z_i·z_l; [(R,) L, L], zero on
    the diagonal."""
    # centring keeps the distances and reduces cancellation of the squares
    theta = theta - theta.mean(-2, keepdim=True)
    square = theta.square().sum(-1)  # [(R,) L]
    sums = square.unsqueeze(-1) + square.unsqueeze(-2)
    product = torch.addmm if theta.dim() == 2 else torch.baddbmm
    distances = product(sums, theta, theta.mT, alpha=-2).clamp_min(0)
    torch.linalg.diagonal(distances).zero_()
    return distances


def median_bandwidth(distances: Tensor) -> Tensor:
    """h = med²/log L, med the median distance of pairs of particles, so that Σ_{l≠i} k(z_l, z_i) ≈
    1; [(R,) L, L] -> [(R)].

    Source: Liu & Wang (2016), section 5."""
    L = distances.shape[-1]
    if L == 1:
        # a single particle has k = 1 and Γ = 0 for every h
        return distances.new_ones(distances.shape[:-2])
    row, column = torch.triu_indices(L, L, 1, device=distances.device)
    return distances[..., row, column].median(-1).values / math.log(L)


def kernel(theta: Tensor, bandwidth: Bandwidth) -> tuple[Tensor, Tensor]:
    """RBF kernel matrix K [(R,) L, L] of particles [(R,) L, P], and its bandwidth h [(R)]."""
    distances = square_distances(theta)
    h = (
        median_bandwidth(distances)
        if bandwidth == "median"
        else distances.new_full(distances.shape[:-2], bandwidth)
    )
    return torch.exp(-distances / h[..., None, None]), h


@dataclass(frozen=True)
class Interaction:
    """Kernel matrix of L particles at a step, or of R sets with L particles each.

    If K is None, the particles do not interact, and D = I/L.  If h is the median heuristic it
    depends on the particles too.  Γ then has further terms, with ∂h/∂z_l, which are
    neglected here as in the literature: the target is invariant only for a fixed h.  (With the
    median heuristic, 20 particles in the plane underestimate the variance of a standard Gaussian by
    3 %.)
    """

    theta: Tensor  # [R·L, P]
    K: Tensor | None  # [L, L], or [R, L, L]
    h: Tensor | None  # [], or [R]
    replicates: int = 1

    @property
    def L(self) -> int:
        return len(self.theta) // self.replicates

    def _split_replicates(self, x: Tensor) -> Tensor:
        """[R·L, P] -> [R, L, P]; unchanged for a single replicate."""
        return x if self.replicates == 1 else x.unflatten(0, (self.replicates, self.L))

    def average(self, x: Tensor) -> Tensor:
        """D x = K x / L; [R·L, P] -> [R·L, P]."""
        return (
            x if self.K is None else (self.K @ self._split_replicates(x)).reshape(x.shape)
        ) / self.L

    def correction(self) -> Tensor | float:
        """Γ_i = (1/L) Σ_l ∇_{z_l} k(z_l, z_i) = (2/hL) (z_i Σ_l K_il − Σ_l K_il z_l); [R·L, P], or
        0 without repulsion."""
        if self.K is None or self.h is None:
            return 0.0
        theta = self._split_replicates(self.theta)
        # centring keeps Γ and reduces cancellation of the two terms
        theta = theta - theta.mean(-2, keepdim=True)
        away = self.K.sum(-1, keepdim=True) * theta - self.K @ theta
        return (away * (2 / (self.h * self.L))[..., None, None]).reshape(self.theta.shape)

    def facts(self) -> dict[str, Tensor]:
        """Info: the bandwidth, and the effective number of neighbours of a particle, the mean of
        Σ_{l≠i} k(z_l, z_i)."""
        if self.K is None or self.h is None:
            return {}
        return {"bandwidth": self.h, "neighbours": self.K.sum((-2, -1)) / self.L - 1}

    def noise(self, generator: torch.Generator, jitter: float) -> tuple[Tensor, float]:
        """A draw of N(0, D ⊗ I), [R·L, P], and the (largest) jitter that the Cholesky factors of K
        needed.

        Raises NumericalError if K has no Cholesky factor."""
        theta = self.theta
        xi = normal_like(theta, generator)
        used = jitter
        if self.K is not None:
            factor, used = _factor(self.K, jitter)
            # a separate draw for each replicate, so that replicates stay independent
            if used > jitter and self.replicates > 1:
                factors = [_factor(K, jitter) for K in self.K]
                factor = torch.stack([L for L, _ in factors])
            xi = (factor @ self._split_replicates(xi)).reshape(theta.shape)
        return xi / self.L**0.5, used


def _factor(K: Tensor, jitter: float) -> tuple[Tensor, float]:
    return jittered_cholesky(K, jitter, "the kernel matrix of the particles", "inference.jitter")


def among(theta: Tensor, replicates: int, bandwidth: Bandwidth) -> Interaction:
    """Interaction among the particles [R·L, P] of each replicate."""
    of_each = theta if replicates == 1 else theta.unflatten(0, (replicates, -1))
    return Interaction(theta, *kernel(of_each, bandwidth), replicates)


@dataclass(frozen=True)
class BlockInteraction:
    """Interaction within random blocks of M of the L particles of each replicate: D and Γ of L/M
    independent sets, O(L M).

    If the permutation does not depend on the particles, the chain of each block leaves Π π(z_l)
    invariant (for fixed h), and so do all together.  A pair shares a block with probability (M −
    1)/(L − 1), so that the mean over permutations of M times the drift is

        ∇log π(z_i) + (M − 1)/(L − 1) Σ_{l≠i} [k(z_l, z_i) ∇log π(z_l) + ∇_{z_l} k(z_l, z_i)],

    the full sum with a scaled contribution of the other particles.  Without interaction, particles
    move with step ε/M."""

    order: Tensor  # [R·L], block by block
    inner: Interaction  # interaction of the R·L/M blocks as replicates
    replicates: int

    def average(self, x: Tensor) -> Tensor:
        """D x; [R·L, P] -> [R·L, P]."""
        return self._restore(self.inner.average(x[self.order]))

    def correction(self) -> Tensor:
        """Γ [R·L, P]."""
        value = self.inner.correction()
        assert isinstance(value, Tensor)
        return self._restore(value)

    def facts(self) -> dict[str, Tensor]:
        """As in ``Interaction``, averaged over the blocks of each replicate."""
        means = {k: v.reshape(self.replicates, -1).mean(1) for k, v in self.inner.facts().items()}
        return means if self.replicates > 1 else {k: v[0] for k, v in means.items()}

    def noise(self, generator: torch.Generator, jitter: float) -> tuple[Tensor, float]:
        """A draw of N(0, D ⊗ I) [R·L, P] and the jitter, as in ``Interaction``."""
        value, used = self.inner.noise(generator, jitter)
        return self._restore(value), used

    def _restore(self, x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        out[self.order] = x
        return out


def within_blocks(
    theta: Tensor,
    replicates: int,
    bandwidth: Bandwidth,
    size: int,
    generator: torch.Generator,
) -> BlockInteraction:
    """Interaction of each of the particles [R·L, P] with ``size`` − 1 random others of its
    replicate; ``size`` divides L.

    Source: Gallego (2021), section 2.3 (Complexity); Liu and Wang (2016), section 3.2 (subsampled
    particles), here with noise."""
    L = len(theta) // replicates
    orders = [
        r * L + torch.randperm(L, generator=generator, device=generator.device)
        for r in range(replicates)
    ]
    order = torch.cat(orders).to(theta.device)
    blocks = replicates * (L // size)
    return BlockInteraction(order, among(theta[order], blocks, bandwidth), replicates)
