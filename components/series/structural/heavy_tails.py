"""Gibbs draws for heavy-tailed errors: the precision of each and the degrees of freedom."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.structural import Errors
from components.series.conditionals.slice_sampling import slice_sample


def draw_precisions(z: Tensor, seen: Tensor, nu: Tensor, generator: torch.Generator) -> Tensor:
    """λ_t | ε_t ~ Gamma((ν + 1)/2, (ν + z_t²)/2), z = ε/σ [C, n]; of times that are not seen
    Gamma(ν/2, ν/2); ν [C].

    Source: Geweke (1993), section 2.1; Gallego (2021), section 1.2.2, robustness."""
    nu = nu.unsqueeze(1)
    shape = ((nu + seen.to(z)) / 2).expand_as(z).contiguous()
    rate = (nu + torch.where(seen, z * z, 0.0)) / 2
    gammas = torch._standard_gamma(shape.to(generator.device), generator=generator).to(z.device)
    return (gammas / rate).clamp_min(torch.finfo(z.dtype).tiny)


def draw_degrees_of_freedom(
    errors: Errors, z: Tensor, seen: Tensor, nu: Tensor, generator: torch.Generator
) -> Tensor:
    """ν [C] | ε, the precisions summed out: ν − 2 ~ Gamma(a, b) times Π_t t_ν(z_t), by slice
    sampling of w in (0, 1) with ν = 2 + a/b · w/(1 − w)."""
    squares = z[:, seen].square()
    n = int(seen.sum())
    unit = errors.shape / errors.rate

    def log_density(w: Tensor) -> Tensor:
        x = unit * w / (1 - w)
        f = 2 + x
        prior = (errors.shape - 1) * x.log() - errors.rate * x - 2 * (1 - w).log()
        constant = torch.lgamma((f + 1) / 2) - torch.lgamma(f / 2) - 0.5 * f.log()
        return prior + n * constant - (f + 1) / 2 * (squares / f.unsqueeze(1)).log1p().sum(1)

    x = (nu - 2) / unit
    w = slice_sample(log_density, x / (1 + x), 0.0, 1.0, generator)
    return 2 + unit * w / (1 - w)
