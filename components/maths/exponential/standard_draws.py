"""Standard normal and uniform numbers on the device of a tensor."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def standard_normal(shape: Iterable[int], generator: torch.Generator, like: Tensor) -> Tensor:
    """A draw of N(0, I), made on the generator's device and moved to the device of ``like``."""
    device = generator.device
    return torch.randn(tuple(shape), generator=generator, dtype=like.dtype, device=device).to(
        like.device
    )


def normal_like(x: Tensor, generator: torch.Generator) -> Tensor:
    """A draw of N(0, I) in the shape of x."""
    return standard_normal(x.shape, generator, x)


def standard_uniform(shape: Iterable[int], generator: torch.Generator, like: Tensor) -> Tensor:
    """Numbers in [0, 1), made on the generator's device and moved to the device of ``like``."""
    device = generator.device
    return torch.rand(tuple(shape), generator=generator, dtype=like.dtype, device=device).to(
        like.device
    )
