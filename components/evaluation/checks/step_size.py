"""Check that gradient steps are small relative to the curvature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.checks import Check, GradientResponsiveMethod, Response
from components.contracts.problems import Batch
from components.contracts.roles import Inference, Problem
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.inference.chains import Chains
from components.inference.log_joint import log_joint

ITERATIONS = 20  # iterations of the power method; each costs about two steps of the sampler


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
        (along,) = torch.autograd.grad(slope, theta, v, retain_graph=True)
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


def step_check(
    problem: Problem, inference: GradientResponsiveMethod[Any], state: Chains, rng: Rng
) -> Check:
    """Compare the largest step since draws are stored with the curvature at the chains, on the last
    batch."""
    name = "steps are small relative to the curvature"
    model: LogJoint = state.model
    response = inference.response(state)
    assert isinstance(inference, Inference)
    _, batch = next(iter(problem.batches(inference.requires.batch_kind, rng, state.t - 1, state.t)))
    try:
        value = largest_response(model, state.theta, batch, response)
    # the log joint is differentiable only once
    except (RuntimeError, ConfigMismatchError) as error:
        return Check(name, None, f"no second derivative: {str(error).splitlines()[0]}")
    detail = (
        f"step × curvature {value:.3g}; above {response.limit:.3g} the path oscillates "
        "with growing amplitude"
    )
    return Check(name, value < response.limit, detail)
