"""A line through points with Gaussian noise: a log joint of two parameters with a Gaussian bound in
closed form."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.problems import Batch
from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.variational.global_gaussian import GlobalGaussian, Noise


class Line:
    """y_b ~ N(θ_1 + θ_2 x_b, 1) with θ ~ N(0, I), without constants: a log joint of two parameters
    shared by all rows."""

    dim = 2

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        # [K, B]
        return -0.5 * (batch.y[:, 0] - theta[:, :1] - theta[:, 1:] * batch.x[:, 0]).square()

    def log_prior(self, theta: Tensor) -> Tensor:
        return -0.5 * theta.square().sum(-1)


ROWS = 6


def line_rows(scale: float = 1.0) -> Batch:
    """Six points of a parabola."""
    x = torch.linspace(-1, 1, ROWS, dtype=torch.float64)[:, None]
    return Batch(
        x, 0.5 + x.square(), torch.ones_like(x, dtype=torch.bool), scale, torch.arange(ROWS)
    )


def line_gaussian(full: bool, noise: Noise) -> GlobalGaussian:
    """q(θ) away from the posterior; correlated if its covariance is full."""
    target = RowwiseLogJoint(Line(), context_dim=2, n_data=ROWS)
    q = GlobalGaussian(target, torch.tensor([0.4, -0.3]).double(), 0.6, full, noise)
    if q.lower is not None:
        with torch.no_grad():
            q.lower.fill_(0.25)
    return q


def line_gradient(q: GlobalGaussian, batch: Batch) -> Tensor:
    """Gradient of the bound, a polynomial in m and L, and log diag L, by all parameters
    concatenated [P]."""
    L = q.scale_tril
    design = torch.cat([torch.ones_like(batch.x), batch.x], 1)
    residual = (batch.y[:, 0] - design @ q.mean).square().sum() + (design @ L).square().sum()
    bound = (
        -0.5 * batch.scale * residual - 0.5 * (q.mean.square().sum() + L.square().sum()) + q.entropy
    )
    return torch.cat([g.flatten() for g in torch.autograd.grad(bound, list(q.parameters()))])
