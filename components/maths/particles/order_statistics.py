"""Quantiles of many small samples."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.maths.compiled.selection import order_statistics


def quantiles(x: Tensor, probabilities: tuple[float, ...]) -> list[Tensor]:
    """Quantiles over dimension 1 of x [R, N, D], one [R, D] per probability, interpolated linearly
    between order statistics; NaN for a single value, which has no spread."""
    if x.shape[1] == 1:
        return [torch.full_like(x[:, 0], math.nan) for _ in probabilities]
    by_sample = x.transpose(1, 2).contiguous()  # [R, D, N]
    last = by_sample.shape[-1] - 1
    places = [p * last for p in probabilities]
    lows = [math.floor(place) for place in places]
    ranks = [rank for low in lows for rank in (low, min(low + 1, last))]
    if by_sample.device.type == "cpu":
        values = by_sample.detach().numpy().reshape(-1, last + 1)
        ordered = torch.from_numpy(order_statistics(values, ranks))
    else:
        ordered = by_sample.sort(-1).values[..., ranks]
    neighbours = ordered.view(*by_sample.shape[:2], len(lows), 2)
    parts = [place - low for place, low in zip(places, lows, strict=True)]
    lower, upper = neighbours.unbind(-1)
    return [torch.lerp(lower[..., j], upper[..., j], part) for j, part in enumerate(parts)]
