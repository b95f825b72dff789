"""A Brownian motion observed with noise in two windows, with known or unknown scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.datasets.named_target import NamedTarget, Variable, joint_target
from components.maths.bijectors import POSITIVE

WIDTH = 2.0  # prior sd of log s and log r


def log_normal(scale: Tensor, centre: float, width: float) -> Tensor:
    """log density of a scale [K, 1] with log scale ~ N(centre, width²), up to a constant [K]."""
    log_scale = scale.log().squeeze(1)
    return -log_scale - 0.5 * ((log_scale - centre) / width).square()


def brownian_motion(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """x_1 ~ N(0, s²), x_t ~ N(x_{t−1}, s²), y_t ~ N(x_t, r²) where observed; s and r are given, or
    ~ LogNormal(0, 2²)."""
    y = like.new_tensor(np.array(data["observed"], float))  # null: NaN
    observed = ~y.isnan()

    def log_path(s: Tensor, r: Tensor, x: Tensor) -> Tensor:
        """log p(x, y | s, r): s, r [K, 1] or [1, 1], x [K, T]."""
        steps = torch.diff(x, dim=1, prepend=torch.zeros_like(x[:, :1])) / s
        errors = (y - x)[:, observed] / r
        log_scales = x.shape[1] * s.log() + errors.shape[1] * r.log()
        return -0.5 * (steps.square().sum(1) + errors.square().sum(1)) - log_scales.squeeze(1)

    locations = Variable("locs", len(y), spread=0.5)
    if "innovation_scale" in data:
        s, r = (like.new_full((1, 1), data[f"{k}_scale"]) for k in ("innovation", "observation"))
        return joint_target((locations,), lambda x: log_path(s, r, x), like)

    def log_joint(s: Tensor, r: Tensor, x: Tensor) -> Tensor:
        return log_path(s, r, x) + log_normal(s, 0.0, WIDTH) + log_normal(r, 0.0, WIDTH)

    scales = (
        Variable(f"{k}_noise_scale", bijector=POSITIVE, centre=-1.0)
        for k in ("innovation", "observation")
    )
    return joint_target((*scales, locations), log_joint, like)
