"""A noisy Lorenz system whose first coordinate is observed at the beginning and at the end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.datasets.inference_gym_densities.brownian_motion import log_normal
from components.datasets.named_target import NamedTarget, Variable, joint_target
from components.maths.bijectors import POSITIVE

SIGMA = 10.0
RHO = 28.0
BETA = 8 / 3


def drift(u: Tensor) -> Tensor:
    """Velocity of the Lorenz system at u [..., 3]."""
    x, y, z = u.unbind(-1)
    return torch.stack([SIGMA * (y - x), x * (RHO - z) - y, x * y - BETA * z], -1)


def lorenz_bridge(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """u_1 ~ N(0, I₃), u_t ~ N(u_{t−1} + h drift(u_{t−1}), h q² I), y_t ~ N(u_t1, r²) where
    observed; q and r are given, or ~ LogNormal(−1, 1)."""
    y = like.new_tensor(np.array(data["observed"], float))  # null: NaN
    observed = ~y.isnan()
    T = len(y)
    h = data["step_size"]

    def log_path(q: Tensor, r: Tensor, path: Tensor) -> Tensor:
        """log p(u, y | q, r): q, r [K, 1] or [1, 1], path [K, 3T]."""
        u = path.unflatten(1, (T, 3))
        steps = (u[:, 1:] - u[:, :-1] - h * drift(u[:, :-1])).flatten(1) / (math.sqrt(h) * q)
        errors = (y - u[:, :, data["observation_index"]])[:, observed] / r
        squares = u[:, 0].square().sum(1) + steps.square().sum(1) + errors.square().sum(1)
        log_scales = steps.shape[1] * q.log() + errors.shape[1] * r.log()
        return -0.5 * squares - log_scales.squeeze(1)

    if "innovation_scale" in data:
        q, r = (like.new_full((1, 1), data[f"{k}_scale"]) for k in ("innovation", "observation"))
        return joint_target((Variable("theta", 3 * T),), lambda path: log_path(q, r, path), like)

    def log_joint(q: Tensor, path: Tensor, r: Tensor) -> Tensor:
        return log_path(q, r, path) + log_normal(q, -1.0, 1.0) + log_normal(r, -1.0, 1.0)

    variables = (
        Variable("innovation_scale", bijector=POSITIVE, centre=-1.0),
        Variable("latents", 3 * T),
        Variable("observation_scale", bijector=POSITIVE, centre=-1.0),
    )
    return joint_target(variables, log_joint, like)
