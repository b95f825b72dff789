"""Standard normal numbers for many particles."""

from __future__ import annotations

import torch
from torch import Tensor

from components.maths.compiled import loops
from components.maths.compiled.normals import standard_normals


def standard_normal(shape: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Tensor:
    """Independent standard normal numbers where ``like`` lies and of its type.

    On the CPU and with numba they are compiled ones, else torch's: other numbers of the same law."""
    if generator.device.type == "cpu" and loops.serve(like):
        return standard_normals(tuple(shape), generator, like.dtype)
    return torch.randn(shape, generator=generator, device=generator.device, dtype=like.dtype).to(like.device)
