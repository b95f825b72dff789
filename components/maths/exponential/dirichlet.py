"""The Dirichlet distribution."""

from __future__ import annotations

import torch
from torch import Tensor

from components.maths.exponential.standard_draws import standard_uniform


def expected_log(alpha: Tensor) -> Tensor:
    """E log π_k = ψ(α_k) − ψ(Σ α), α [..., K]."""
    return alpha.digamma() - alpha.sum(-1, keepdim=True).digamma()


def log_normaliser(alpha: Tensor) -> Tensor:
    """log Γ(Σ α) − Σ_k log Γ(α_k): the density is its exponential times Π π_k^(α_k − 1), [..., K]
    -> [...]."""
    return alpha.sum(-1).lgamma() - alpha.lgamma().sum(-1)


def kl_dirichlet(alpha: Tensor, prior: Tensor) -> Tensor:
    """KL(Dir(α) ‖ Dir(α_0)), [..., K] -> [...]."""
    return (
        log_normaliser(alpha)
        - log_normaliser(prior)
        + ((alpha - prior) * expected_log(alpha)).sum(-1)
    )


def draw_gamma(shape: Tensor, generator: torch.Generator) -> Tensor:
    """Draw Gamma(shape, 1) for each shape."""
    return torch._standard_gamma(shape.to(generator.device), generator=generator).to(shape.device)


def draw_log_dirichlet(alpha: Tensor, generator: torch.Generator) -> Tensor:
    """Draw log π for π ~ Dir(α), [..., K].

    Shapes below 1 use Gamma(α + 1) U^(1/α), so that the logarithm stays finite.
    """
    uniform = standard_uniform(alpha.shape, generator, alpha)
    log_gamma = (
        draw_gamma(alpha + 1, generator).log()
        + uniform.clamp_min(torch.finfo(alpha.dtype).tiny).log() / alpha
    )
    return log_gamma - log_gamma.logsumexp(-1, keepdim=True)
