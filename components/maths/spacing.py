"""Row numbers: all, or evenly spaced ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def row_numbers(x: Tensor) -> Tensor:
    """0 … N − 1 for a tensor of N rows, on its device."""
    return torch.arange(len(x), device=x.device)


def spaced_rows(n: int, most: int, **like: Any) -> Tensor:
    """Numbers of at most ``most`` of n rows, evenly spaced from the first to the last [min(n,
    most)] long, on the device of ``like`` and computed in its dtype."""
    return torch.linspace(0, n - 1, min(n, most), **like).round().long()


def sample_rows(size: int, n: int, generator: torch.Generator | None) -> Tensor:
    """Numbers of n of the rows: at random with replacement, or without a generator the first n."""
    if generator is None:
        return torch.arange(min(n, size))
    return torch.randint(size, (n,), generator=generator, device=generator.device)


def evenly_spaced(theta: Tensor, most: int) -> Tensor:
    """The given number of rows, evenly spaced, or all."""
    if len(theta) <= most:
        return theta
    return theta[spaced_rows(len(theta), most, device=theta.device)]
