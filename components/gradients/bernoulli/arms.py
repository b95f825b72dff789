"""ARMS: more than two antithetic draws of binary variables."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from components.contracts.roles import AtLeastTwo
from components.contracts.streams import Rng
from components.gradients.bernoulli.antithetic import Antithetic
from components.gradients.bernoulli.layers import uniform
from components.maths.exponential.standard_draws import standard_normal
from components.registry import register

Copula = Literal["dirichlet", "gaussian"]
# Gauss–Legendre points on (0, 1): error of the Gaussian copula's probabilities about 1e-9, and 1e-4
# for ½ with 2 draws
POINTS = 20


def dirichlet(shape: torch.Size, like: Tensor, rng: Rng) -> Tensor:
    """u_k = (1 − d_k)^{n−1}, d ~ Dirichlet(1, …, 1) over the first dimension of ``shape`` (n), with
    uniform marginals."""
    exponential = -torch.log1p(-uniform(shape, like, rng))
    d = exponential / exponential.sum(0)
    return (1 - d).pow(len(exponential) - 1)


def gaussian(shape: torch.Size, like: Tensor, rng: Rng) -> Tensor:
    """u_k = Φ(e_k), e ~ N(0, 1) with pairwise correlation −1/(n − 1), the smallest possible."""
    noise = standard_normal(shape, rng.noise, like)
    n = len(noise)
    return torch.special.ndtr(math.sqrt(n / (n - 1)) * (noise - noise.mean(0)))


def joint_lower_probability(copula: Copula, m: Tensor, n: int) -> Tensor:
    """P(u_j < m, u_k < m) for two of n numbers; m in (0, ½]."""
    if copula == "dirichlet":
        return (2 * m.pow(1 / (n - 1)) - 1).clamp_min(0).pow(n - 1)
    # ∂/∂r P(e_j < h, e_k < h) = exp(−h²/(1 + r)) / (2π √(1 − r²)), integrated from r = 0
    # (independence); r = sin t.
    h = torch.special.ndtri(m)
    end = math.asin(-1 / (n - 1))
    nodes, weights = _legendre(m)
    slope = torch.exp(-h.square()[..., None] / (1 + (end * nodes).sin()))
    return (m.square() + end / (2 * math.pi) * (slope * weights).sum(-1)).clamp_min(0)


def _legendre(like: Tensor) -> tuple[Tensor, Tensor]:
    """Points and weights of a Gauss-Legendre rule on (0, 1), by eigenvectors (Golub and Welsch
    1969)."""
    k = torch.arange(1, POINTS, dtype=torch.float64)
    off_diagonal = (k / (4 * k.square() - 1).sqrt()).diag(1)
    nodes, vectors = torch.linalg.eigh(off_diagonal + off_diagonal.T)
    return (nodes + 1).div(2).to(like), vectors[0].square().to(like)


@register("gradient", "arms")
class ARMS(Antithetic):
    """ARMS: n draws of each variable, equally and negatively correlated in pairs.

    Each draw is compared with the mean of all.

        ∂/∂α_l E f = E[(n − 1)⁻¹ Σ_k (f(z^k) − f̄) (z_l^k − σ(α_l)) / (1 − ρ_l)]
        ρ_l = Corr(z_l^j, z_l^k)
        z_l^k = 1[u^k < σ(α_l)] where σ(α_l) ≤ ½, else 1[u^k > 1 − σ(α_l)]
        (u^1, …, u^n) from a copula, every u^k ~ U(0, 1)

    so that as few of the n draws as possible take the rarer value of a variable
    simultaneously.  dirichlet: u = (1 − d)^{n−1}, d ~ Dirichlet(1_n),
    P(u^j, u^k < m) = max(0, 2 m^{1/(n−1)} − 1)^{n−1}; gaussian: normals of correlation
    −1/(n − 1), ρ by quadrature.  n = S = 2 is DisARM; independent draws (ρ = 0) are leave-one-out.
    Layers are treated as in ARM, with one draw of the layers below for all n, because only draws
    given the same α can be compared in this way.  Cost: L n evaluations of f. p learns from the
    draws of the first layer.  f [n, B], α [B, D].  Terms: elbo, of the whole data set in nats.

    Raises:
        ConfigError: there is only one draw.

    Source: Dimitriev and Zhou (2021).
    """

    first_alone = True

    n_samples: AtLeastTwo
    copula: Copula

    @property
    def chains(self) -> int:
        return 1

    def draw_coupled(self, alpha: Tensor, rng: Rng) -> tuple[Tensor, Tensor]:
        shape = torch.Size([self.n_samples, *alpha.shape])
        u = (
            dirichlet(shape, alpha, rng)
            if self.copula == "dirichlet"
            else gaussian(shape, alpha, rng)
        )
        rare = (u < (-alpha.abs()).sigmoid()).to(alpha)
        return u, torch.where(alpha > 0, 1 - rare, rare)

    def slope(self, u: Tensor, z: Tensor, f: Tensor, alpha: Tensor) -> Tensor:
        n = self.n_samples
        # probability of the rarer value
        m = (-alpha.abs()).sigmoid().clamp_min(torch.finfo(alpha.dtype).tiny)
        uncorrelated = (1 - joint_lower_probability(self.copula, m, n) / m) / (1 - m)  # 1 − ρ
        differences = ((f - f.mean(0))[..., None] * (z - alpha.sigmoid())).sum(0)
        return differences / (n - 1) / uncorrelated
