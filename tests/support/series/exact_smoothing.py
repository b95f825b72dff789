"""The smoothing distributions of a linear Gaussian system from the joint Gaussian of all its
states, by dense algebra."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from components.series.sequence import LinearGaussianSystem


class Exact(NamedTuple):
    mean: Tensor  # [T, dx]
    covariance: Tensor  # covariance at each time [T, dx, dx]

    @property
    def variance(self) -> Tensor:
        return self.covariance.diagonal(dim1=1, dim2=2)


def smooth_exactly(s: LinearGaussianSystem, y: Tensor) -> Exact:
    """E and Cov of x_1 … x_T given the observations [T, dy] without those with a NaN coordinate."""
    times = len(y)
    dx = len(s.m0)
    dy = y.shape[1]
    # x = F (x_0, q_1 … q_T): every state as a sum of independent terms.
    F = torch.zeros(times * dx, (times + 1) * dx, dtype=y.dtype)
    for t in range(1, times + 1):
        for v in range(t + 1):
            F[(t - 1) * dx : t * dx, v * dx : (v + 1) * dx] = torch.linalg.matrix_power(s.A, t - v)
    mean = F @ torch.cat([s.m0, s.m0.new_zeros(times * dx)])
    cov = F @ torch.block_diag(s.P0, *[s.Q] * times) @ F.T
    is_observed = (~y.isnan().any(1)).repeat_interleave(dy)
    H = torch.block_diag(*[s.H] * times)[is_observed]
    gain = (
        cov
        @ H.T
        @ torch.linalg.inv(
            H @ cov @ H.T + torch.block_diag(*[s.Sigma] * times)[is_observed][:, is_observed]
        )
    )
    mean = mean + gain @ (y.flatten()[is_observed] - H @ mean)
    cov = cov - gain @ H @ cov
    blocks = [cov[t * dx : (t + 1) * dx, t * dx : (t + 1) * dx] for t in range(times)]
    return Exact(mean.view(times, dx), torch.stack(blocks))
