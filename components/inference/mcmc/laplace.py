"""Laplace fit of a log joint: its mode and the curvature at the mode."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.errors import ConfigMismatchError
from components.inference.chains import ModelBatch
from components.inference.log_joint import finite_log_joint, log_joint

ITERATIONS = 200
# curvatures below this, relative to unit curvature of every coordinate, count as zero
MIN_CURVATURE = 1e-10
# predicted increase of the log joint by a Newton step at which the search for the mode stops
DECREMENT = 1e-12


def derivatives(model: LogJoint, theta: Tensor, batch: ModelBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Log joint [], gradient [P] and Hessian [P, P] at θ [P], with P copies of θ as chains that
    each compute one row of the Hessian."""
    P = len(theta)
    copies = theta.detach().expand(P, P).clone().requires_grad_()
    with torch.enable_grad():
        value = log_joint(model, copies, batch)
        (gradient,) = torch.autograd.grad(value.sum(), copies, create_graph=True)
        if gradient.requires_grad:
            (hessian,) = torch.autograd.grad(gradient.diagonal().sum(), copies)
        else:  # linear in θ
            hessian = torch.zeros_like(gradient)
    return value[0].detach(), gradient[0].detach(), 0.5 * (hessian + hessian.T)


def equilibrate(precision: Tensor) -> tuple[Tensor, Tensor]:
    """Scales s [P] = √|Λ_jj|, and Λ_jk/(s_j s_k) [P, P], which is independent of the units of θ."""
    scale = precision.diagonal().abs().sqrt()
    scale = torch.where(scale > 0, scale, 1.0)
    return scale, precision / torch.outer(scale, scale)


def mode(model: LogJoint, theta: Tensor, batch: ModelBatch) -> tuple[Tensor, Tensor, Tensor]:
    """A maximum of the log joint by ascent from θ [P]: θ̂ [P], its log joint [] and Hessian [P, P].

    Newton steps use the absolute values of the curvatures, so that they lead away from saddles;
    step lengths are halved, and the one with the largest log joint is taken.

    Source: Nocedal and Wright (2006), section 3.4."""
    halvings = 0.5 ** torch.arange(40, dtype=theta.dtype, device=theta.device)
    for _ in range(ITERATIONS):
        value, gradient, hessian = derivatives(model, theta, batch)
        if not torch.isfinite(hessian).all():
            break
        scale, scaled = equilibrate(-hessian)
        curvature, directions = torch.linalg.eigh(scaled)
        bent = curvature.abs().clamp(min=MIN_CURVATURE)
        ascent = directions @ (directions.T @ (gradient / scale) / bent) / scale  # [P]
        if float(gradient @ ascent) < DECREMENT:
            break
        trials = theta + halvings[:, None] * ascent  # [40, P]
        values = finite_log_joint(model, trials, batch)
        if values.max() <= value:  # no further ascent is possible because of rounding
            break
        theta = trials[values.argmax()]
    return theta, value, hessian


def laplace(model: LogJoint, starts: Tensor, batch: ModelBatch) -> tuple[Tensor, Tensor]:
    """N(θ̂, L Lᵀ) of the highest mode found from the ``starts`` [S, P]: θ̂ [P] and L [P, P] with L
    Lᵀ = (−∇∇ᵀlog p(θ̂, y))⁻¹.

    Raises ConfigMismatchError if the log joint has no maximum with curvature in every direction.

    Source: Bishop (2006), section 4.4."""
    modes = [mode(model, theta, batch) for theta in starts]
    theta, _, hessian = max(modes, key=lambda m: float(m[1]))
    scale, scaled = equilibrate(-hessian)
    R, info = torch.linalg.cholesky_ex(scaled)
    if info.any() or not (R.diagonal().square() > MIN_CURVATURE).all():
        raise ConfigMismatchError(
            "inference.proposal: the log density has no maximum with curvature in every direction, "
            "so a Laplace fit is not possible; use inference.proposal=prior (with data) or another "
            "sampler"
        )
    unit = torch.eye(len(theta), dtype=R.dtype, device=R.device)
    # R⁻ᵀ in the units of θ
    return theta, torch.linalg.solve_triangular(R.T, unit, upper=True) / scale[:, None]
