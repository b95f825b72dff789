"""Quantiles of many small samples."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


def quantiles(x: Tensor, probabilities: tuple[float, ...]) -> list[Tensor]:
    """Quantiles over dimension 1 of x [R, N, D], one [R, D] per probability, interpolated linearly between order statistics."""
    by_sample = x.transpose(1, 2).contiguous()  # [R, D, N]
    if by_sample.device.type == "cpu":
        # numpy sorts values with vector instructions: 1 ms where torch takes 23 ms on [100, 4, 1000].
        ordered = torch.from_numpy(np.sort(by_sample.detach().numpy(), axis=-1))
    else:
        ordered = by_sample.sort(-1).values
    last = ordered.shape[-1] - 1
    found = []
    for p in probabilities:
        place = p * last
        low = math.floor(place)
        high = min(low + 1, last)
        found.append(torch.lerp(ordered[..., low], ordered[..., high], place - low))
    return found
