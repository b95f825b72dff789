"""Counts at 100 places, with a Gaussian process with unknown scales as log intensity."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from components.datasets.inference_gym_densities.brownian_motion import log_normal
from components.datasets.named_target import NamedTarget, Variable, joint_target
from components.maths.bijectors import POSITIVE

FLOOR = 1e-3  # added to both scales
JITTER = 1e-6


def log_gaussian_cox(data: dict[str, Any], like: Tensor) -> NamedTarget:
    """f ~ GP(m, a² Matérn-3/2(‖·‖/l)), y_i ~ Poisson(e_i exp f_i), log a ~ N(−1, ½²), log l ~ N(−1,
    1), m the mean of log y_i − log e_i.

    Samplers use the whitened process v ~ N(0, I), f = m + L v with the Cholesky factor L."""
    x, extents, counts = (like.new_tensor(data[k]) for k in ("locations", "extents", "counts"))
    distance = torch.cdist(x, x)
    mean = (counts.log() - extents.log()).mean()
    eye = torch.eye(len(x)).to(x)

    def log_intensity(a: Tensor, length: Tensor, v: Tensor) -> Tensor:
        scaled = 3**0.5 * distance / (length + FLOOR).unsqueeze(2)
        kernel = (a + FLOOR).square().unsqueeze(2) * (1 + scaled) * (-scaled).exp()
        L = torch.linalg.cholesky_ex(kernel + JITTER * eye)[0]
        return mean + (L @ v.unsqueeze(2)).squeeze(2)

    def log_joint(a: Tensor, length: Tensor, v: Tensor) -> Tensor:
        f = log_intensity(a, length, v)
        log_likelihood = (counts * f - extents * f.exp()).sum(1)
        log_prior = log_normal(a, -1.0, 0.5) + log_normal(length, -1.0, 1.0)
        return log_likelihood + log_prior - 0.5 * v.square().sum(1)

    variables = (
        Variable("amplitude", bijector=POSITIVE, centre=-1.0, spread=0.3),
        Variable("length_scale", bijector=POSITIVE, centre=-1.0, spread=0.5),
        Variable("log_intensity", len(x)),
    )
    return joint_target(
        variables, log_joint, like, lambda a, length, v: (a, length, log_intensity(a, length, v))
    )
