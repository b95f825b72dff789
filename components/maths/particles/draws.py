"""Uniform and standard normal numbers for many particles.

On the CPU they come from compiled loops, elsewhere from torch: different numbers with the same
distribution."""

from __future__ import annotations

import torch
from torch import Tensor

from components.maths.compiled import loops
from components.maths.compiled.normals import standard_normals, uniforms
from components.maths.exponential import standard_draws


def standard_normal(shape: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Tensor:
    """Independent standard normal numbers with the device and dtype of ``like``."""
    if generator.device.type == "cpu" and loops.is_on_cpu(like):
        return standard_normals(tuple(shape), generator, like.dtype)
    return standard_draws.standard_normal(shape, generator, like)


def standard_normal_like(x: Tensor, generator: torch.Generator) -> Tensor:
    """One for each entry of particles x [..., N, dx], contiguous by coordinate in memory."""
    return standard_normal((*x.shape[:-2], x.shape[-1], x.shape[-2]), generator, x).mT


def uniform(shape: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Tensor:
    """Independent numbers in [0, 1) on the device of ``like``, in float64."""
    if generator.device.type == "cpu" and loops.is_on_cpu(like):
        return uniforms(shape, generator)
    return torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64).to(
        like.device
    )
