"""Row numbers: all, or evenly spaced ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def row_numbers(x: Tensor) -> Tensor:
    """0 … N − 1 for a tensor of N rows, on its device."""
    return torch.arange(len(x), device=x.device)


def spaced_rows(n: int, most: int, **like: Any) -> Tensor:
    """Numbers of at most ``most`` of n rows, evenly spaced from the first to the last [min(n, most)]
    long; ``like``: device, and dtype in which they are computed."""
    return torch.linspace(0, n - 1, min(n, most), **like).round().long()


def evenly_spaced(theta: Tensor, most: int) -> Tensor:
    """The given number of rows, evenly spaced, or all."""
    if len(theta) <= most:
        return theta
    return theta[torch.linspace(0, len(theta) - 1, most, device=theta.device).round().long()]
