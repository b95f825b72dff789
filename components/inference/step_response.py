"""Check that gradient steps are small relative to the curvature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.checks import Check
from components.contracts.problems import Batch
from components.contracts.roles import FinishedRun
from components.errors import ConfigMismatchError
from components.inference.chains import Chains
from components.inference.log_joint import log_joint

ITERATIONS = 20  # iterations of the power method; each costs about two steps of the sampler


@dataclass(frozen=True)
class Response:
    """Linear response of a gradient-based step: θ moves by A ∇log p, A [K·P, K·P] positive
    definite.

    Where the largest eigenvalue of A times the curvature −∇² log p exceeds ``limit``, the path
    oscillates with growing amplitude.  The limit is 2 without momentum and 2 (1 + β) with momentum
    β.

    Source: Polyak (1964)."""

    apply: Callable[[Tensor], Tensor]  # A g of g [K, P]
    limit: float


def largest_response(
    model: LogJoint, theta: Tensor, batch: Batch | None, response: Response
) -> float:
    """Lower estimate of the largest eigenvalue of A (−∇² log p) over all K chains θ [K, P]
    together, by the power method.

    If the eigenvalue of largest magnitude is negative (log p is convex in its direction), the
    matrix is shifted by it.  NaN if the log joint has no second derivatives."""
    theta = theta.detach().requires_grad_()
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(
            log_joint(model, theta, batch).sum(), theta, create_graph=True
        )
    if not slope.requires_grad:
        return 0.0  # log p is linear

    def bent(v: Tensor) -> Tensor:
        # of a scalar: for a vector torch imports SymPy, which takes a second
        (along,) = torch.autograd.grad((slope * v).sum(), theta, retain_graph=True)
        return response.apply(-along)

    start = torch.randn(
        theta.shape, generator=torch.Generator(theta.device).manual_seed(0), device=theta.device
    )
    start = start.to(theta)
    value = _power_iteration(bent, start)
    if value >= 0:
        return value
    return _power_iteration(lambda v: bent(v) - value * v, start) + value


def _power_iteration(apply: Callable[[Tensor], Tensor], v: Tensor) -> float:
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


def check_step(run: FinishedRun, response: Response) -> Check:
    """Compare the largest step since draws are stored with the curvature at the chains, on the last
    batch."""
    name = "steps are small relative to the curvature"
    state: Chains = run.state
    batch_kind = run.inference.requires.batch_kind
    _, batch = next(iter(run.problem.batches(batch_kind, run.rng, state.t - 1, state.t)))
    try:
        value = largest_response(state.model, state.theta, batch, response)
    # the log joint is differentiable only once
    except (RuntimeError, ConfigMismatchError) as error:
        return Check(name, None, f"no second derivative: {str(error).splitlines()[0]}")
    detail = (
        f"step × curvature {value:.3g}; above {response.limit:.3g} the path oscillates "
        "with growing amplitude"
    )
    return Check(name, value < response.limit, detail)
