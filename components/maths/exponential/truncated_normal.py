"""A normal of unit variance cut at zero."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def log_share(f: Tensor) -> Tensor:
    """log Φ(f): how probable it is that N(f, 1) is above 0."""
    return torch.special.log_ndtr(f)


def truncated_normal_mean(f: Tensor) -> Tensor:
    """E[z | z > 0] of z ~ N(f, 1): f + φ(f)/Φ(f)."""
    return f + (-0.5 * (f.square() + math.log(2 * math.pi)) - log_share(f)).exp()


def draw_truncated_normal(f: Tensor, generator: torch.Generator) -> Tensor:
    """z ~ N(f, 1) given z > 0: f − Φ⁻¹(u Φ(f)) with u uniform, and where Φ(f) is tiny z f ~ −Exp(1)
    but for 1/f²."""
    u = torch.rand(f.shape, generator=generator, dtype=f.dtype, device=generator.device).to(
        f.device
    )
    u = u.clamp_min(torch.finfo(f.dtype).tiny)
    is_tail = f < -5.0 if f.dtype == torch.float32 else f < -30.0
    near = f - torch.special.ndtri((log_share(f) + u.log()).exp())
    return torch.where(is_tail, u.log() / f.clamp_max(-1.0), near.clamp_min(0))
