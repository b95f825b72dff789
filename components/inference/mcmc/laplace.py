"""Laplace's fit of a log joint: its mode and the curvature there."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.errors import ConfigMismatchError
from components.inference.chains import ModelBatch
from components.inference.log_joint import finite_log_joint, log_joint

ITERATIONS = 200
MIN_CURVATURE = 1e-10  # curvatures below this, where every coordinate has curvature 1, are none
# the mode is found when a Newton step promises at most this rise of the log joint
DECREMENT = 1e-12


def derivatives(model: LogJoint, theta: Tensor, batch: ModelBatch) -> tuple[Tensor, Tensor, Tensor]:
    """log joint [], gradient [P] and Hessian [P, P] at θ [P]: P copies of θ as chains, each with
    one row of the Hessian."""
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
    """Scales s [P] = √|Λ_jj|, and Λ_jk/(s_j s_k) [P, P], which does not depend on the units of
    θ."""
    scale = precision.diagonal().abs().sqrt()
    scale = torch.where(scale > 0, scale, 1.0)
    return scale, precision / torch.outer(scale, scale)


def mode(model: LogJoint, theta: Tensor, batch: ModelBatch) -> tuple[Tensor, Tensor, Tensor]:
    """A maximum of the log joint uphill of θ [P]: θ̂ [P], its log joint [] and Hessian [P, P].

    Newton steps with the absolute values of the curvatures, which therefore lead away from saddles,
    halved until the log joint is highest.

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
        if values.max() <= value:  # rounding: no further ascent is possible
            break
        theta = trials[values.argmax()]
    return theta, value, hessian


def laplace(model: LogJoint, starts: Tensor, batch: ModelBatch) -> tuple[Tensor, Tensor]:
    """N(θ̂, L Lᵀ) of the highest mode found from the ``starts`` [S, P]: θ̂ [P] and L [P, P] with L
    Lᵀ = (−∇∇ᵀlog p(θ̂, y))⁻¹.

    Raises ConfigMismatchError where the log joint has no maximum with curvature in every direction.

    Source: Bishop (2006), section 4.4."""
    modes = [mode(model, theta, batch) for theta in starts]
    theta, _, hessian = max(modes, key=lambda m: float(m[1]))
    scale, scaled = equilibrate(-hessian)
    R, info = torch.linalg.cholesky_ex(scaled)
    if info.any() or not (R.diagonal().square() > MIN_CURVATURE).all():
        raise ConfigMismatchError(
            "inference.proposal: the log density has no maximum with curvature in every direction, so no Laplace fit; "
            "use inference.proposal=prior where there are data, or another sampler"
        )
    unit = torch.eye(len(theta), dtype=R.dtype, device=R.device)
    # R⁻ᵀ in the units of θ
    return theta, torch.linalg.solve_triangular(R.T, unit, upper=True) / scale[:, None]
