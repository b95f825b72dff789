"""The normal–Wishart distribution of a mean and a precision matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI, half_log_det
from components.maths.exponential.dirichlet import draw_gamma
from components.maths.exponential.standard_draws import normal_like


@dataclass(frozen=True)
class NormalWishart:
    """μ | Λ ~ N(m, (βΛ)⁻¹), Λ ~ Wishart(ν, V⁻¹), E Λ = ν V⁻¹, ν > D − 1; batches of them, [...]
    each.

    Source: Bishop (2006), eqs. (B.78) to (B.83), W = V⁻¹."""

    m: Tensor  # [..., D]
    beta: Tensor  # [...]
    V: Tensor  # [..., D, D]
    nu: Tensor  # [...]

    @property
    def dim(self) -> int:
        return self.m.shape[-1]

    @property
    def root(self) -> Tensor:
        """R lower triangular with R Rᵀ = V.  NaN if V is not positive definite."""
        R, info = torch.linalg.cholesky_ex(self.V)
        return torch.where((info > 0)[..., None, None], torch.nan, R)

    def _halves(self) -> Tensor:
        """(ν + 1 − i)/2, i = 1 … D [..., D]."""
        return 0.5 * (
            self.nu[..., None] - torch.arange(self.dim, dtype=self.nu.dtype, device=self.nu.device)
        )

    def log_det_scale(self) -> Tensor:
        """log |V|."""
        return 2 * half_log_det(self.root)

    def expected_log_det(self) -> Tensor:
        """E log |Λ| = Σ_i ψ((ν + 1 − i)/2) + D log 2 − log |V|."""
        return self._halves().digamma().sum(-1) + self.dim * math.log(2) - self.log_det_scale()

    def log_normaliser(self) -> Tensor:
        """log B(V⁻¹, ν) of the Wishart density B |Λ|^((ν − D − 1)/2) exp(−½ tr VΛ)."""
        D = self.dim
        half = 0.5 * self.nu
        gammas = 0.25 * D * (D - 1) * math.log(math.pi) + self._halves().lgamma().sum(-1)
        return half * self.log_det_scale() - half * D * math.log(2) - gammas

    def square(self, x: Tensor) -> Tensor:
        """(x − m)ᵀ V⁻¹ (x − m), x [B, D] or [..., B, D] -> [..., B]."""
        centred = x - self.m[..., None, :]
        unit = torch.linalg.solve_triangular(self.root, centred.mT, upper=False)  # [..., D, B]
        return unit.square().sum(-2)

    def expected_log_density(self, x: Tensor) -> Tensor:
        """E log N(x | μ, Λ⁻¹) [..., B]."""
        D = self.dim
        square = D / self.beta[..., None] + self.nu[..., None] * self.square(x)
        return 0.5 * (self.expected_log_det()[..., None] - D * LOG_2PI - square)

    def log_predictive(self, x: Tensor) -> Tensor:
        """log E N(x | μ, Λ⁻¹): Student's t with ν + 1 − D degrees of freedom [..., B] (Bishop 2006,
        eq. 10.81)."""
        D = self.dim
        free = self.nu + 1 - self.dim
        stretch = (1 + self.beta) / self.beta  # the scale matrix is V (1 + β)/(β (ν + 1 − D))
        log_det = self.log_det_scale() + D * (stretch / free).log()
        constant = (
            (0.5 * (free + D)).lgamma()
            - (0.5 * free).lgamma()
            - 0.5 * D * (free * math.pi).log()
            - 0.5 * log_det
        )
        return (
            constant[..., None]
            - 0.5 * (free + D)[..., None] * (self.square(x) / stretch[..., None]).log1p()
        )

    def posterior(self, weights: Tensor, x: Tensor) -> NormalWishart:
        """Posterior given rows x [B, D] with weights w [..., B]; the batch shares one prior (Bishop
        2006, eqs. 10.60 to 10.63)."""
        n = weights.sum(-1)  # [...]
        mean = (weights @ x) / n.clamp_min(torch.finfo(n.dtype).tiny)[..., None]  # [..., D]
        centred = x - mean[..., None, :]  # [..., B, D]
        scatter = (weights[..., None] * centred).mT @ centred
        beta = self.beta + n
        off = mean - self.m
        shrunk = (self.beta * n / beta)[..., None, None] * off[..., :, None] * off[..., None, :]
        m = (self.beta[..., None] * self.m + n[..., None] * mean) / beta[..., None]
        V = self.V + scatter + shrunk
        return replace(self, m=m, beta=beta, V=0.5 * (V + V.mT), nu=self.nu + n)

    def kl(self, prior: NormalWishart) -> Tensor:
        """KL(self ‖ prior) [...]."""
        D = self.dim
        ratio = prior.beta / self.beta
        of_mean = self.nu * prior.beta * self.square(prior.m[..., None, :]).squeeze(-1)
        normal = 0.5 * (of_mean + D * (ratio - 1 - ratio.log()))
        trace = torch.linalg.diagonal(
            torch.cholesky_solve(prior.V.expand_as(self.V), self.root)
        ).sum(-1)  # tr V⁻¹V_0
        wishart = (
            self.log_normaliser()
            - prior.log_normaliser()
            + 0.5 * (self.nu - prior.nu) * self.expected_log_det()
            + 0.5 * self.nu * (trace - D)
        )
        return normal + wishart

    def log_density(self, mu: Tensor, L: Tensor) -> Tensor:
        """log p(μ, Λ) at μ [..., D] and Λ = L Lᵀ, L [..., D, D] lower triangular."""
        D = self.dim
        log_det = 2 * half_log_det(L)
        pulled = ((mu - self.m)[..., None, :] @ L).squeeze(-2)
        normal = 0.5 * (
            log_det + D * (self.beta / (2 * math.pi)).log() - self.beta * pulled.square().sum(-1)
        )
        trace = (self.root.mT @ L).square().sum((-2, -1))  # tr VΛ
        return normal + self.log_normaliser() + 0.5 * (self.nu - D - 1) * log_det - 0.5 * trace

    def mode(self) -> tuple[Tensor, Tensor]:
        """Mode of p(μ, Λ): μ = m and Λ⁻¹ = V/(ν − D), ν > D."""
        return self.m, self.V / (self.nu - self.dim)[..., None, None]

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw μ [..., D] and L [..., D, D] lower triangular with L Lᵀ = Λ, by Bartlett's
        decomposition."""
        D = self.dim
        A = (
            normal_like(self.V, generator).tril(-1)
            + (2 * draw_gamma(self._halves(), generator)).sqrt().diag_embed()
        )
        unit = torch.eye(D, dtype=self.m.dtype, device=self.m.device)
        # Λ = R⁻ᵀ A Aᵀ R⁻¹ with V = R Rᵀ
        root = torch.linalg.solve_triangular(self.root.mT, unit.expand_as(self.V), upper=True) @ A
        L = torch.linalg.cholesky(root @ root.mT)
        z = normal_like(self.m, generator)[..., None] / self.beta.sqrt()[..., None, None]
        mu = self.m + torch.linalg.solve_triangular(L.mT, z, upper=True).squeeze(-1)
        return mu, L
