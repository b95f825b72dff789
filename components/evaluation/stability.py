"""Whether the steps of a sampler that follows the gradient are small enough for the curvature where it stands."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.checks import Response
from components.contracts.problems import Batch
from components.inference.log_joint import log_joint

ITERATIONS = 20  # of the power method, each about as dear as two steps of the sampler


def largest_response(model: LogJoint, theta: Tensor, batch: Batch | None, response: Response) -> float:
    """Largest eigenvalue of A (−∇² log p) over all K chains θ [K, P] together, by the power method: from below.

    Where the eigenvalue of largest size is negative, a direction in which log p bends upwards, the matrix is shifted by it.
    NaN where the log joint has no second derivatives."""
    theta = theta.detach().requires_grad_()
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(log_joint(model, theta, batch).sum(), theta, create_graph=True)
    if not slope.requires_grad:
        return 0.0  # log p is linear

    def bent(v: Tensor) -> Tensor:
        (along,) = torch.autograd.grad(slope, theta, v, retain_graph=True)
        return response.apply(-along)

    start = torch.randn(theta.shape, generator=torch.Generator(theta.device).manual_seed(0), device=theta.device)
    start = start.to(theta)
    value = _power(bent, start)
    if value >= 0:
        return value
    return _power(lambda v: bent(v) - value * v, start) + value


def _power(apply: Callable[[Tensor], Tensor], v: Tensor) -> float:
    value = 0.0
    for _ in range(ITERATIONS):
        v = v / v.norm()
        w = apply(v)
        value = float((v * w).sum())
        size = float(w.norm())
        if size == 0 or not torch.isfinite(w).all():
            return value
        v = w
    return value
