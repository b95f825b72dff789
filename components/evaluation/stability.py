"""Checks of a method's final state: step sizes, tails of the weights, and spread.

Step sizes are compared with the curvature, and weights are examined beyond the draws.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.checks import Check, Response
from components.contracts.posteriors import HoldsDraws
from components.contracts.problems import Batch
from components.contracts.roles import Inference, Problem
from components.contracts.streams import Rng
from components.evaluation import limits
from components.inference.gaussian_weights.swag import SwagState
from components.inference.log_joint import log_joint
from components.inference.mcmc.importance_sampling import Weighted
from components.inference.mcmc.tails import tail_growth
from components.inference.variational.bbvi import BlackBoxTrainingState
from components.inference.variational.gaussian_vi import GaussianTrainingState
from components.metrics.diagnostics import FEWEST_WEIGHTS, pareto_k
from components.problems.density import Density
from components.series.structural.structural_mle import Searches

# largest sd of SWAG's Gaussian over the root mean square of the weights, below which it is a point
LEAST_SPREAD = 1e-6
ITERATIONS = 20  # of the power method, each about as dear as two steps of the sampler


def largest_response(
    model: LogJoint, theta: Tensor, batch: Batch | None, response: Response
) -> float:
    """Largest eigenvalue of A (−∇² log p) over all K chains θ [K, P] together, by the power method:
    from below.

    Where the eigenvalue of largest size is negative, a direction in which log p bends upwards, the
    matrix is shifted by it. NaN where the log joint has no second derivatives."""
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


def approximation_checks(
    problem: Problem, inference: Inference, state: object, rng: Rng
) -> list[Check]:
    """Checks of an approximation by its state: the tails of a proposal, the spread of SWAG's
    Gaussian, the end of a search, the overlap of a fitted q with its target."""
    if isinstance(state, Searches):
        return [_check_search_convergence(state)]
    if isinstance(problem, Density) and isinstance(
        state, GaussianTrainingState | BlackBoxTrainingState
    ):
        posterior = inference.posterior(state)
        assert isinstance(posterior, HoldsDraws)
        return [_check_overlap(problem, state, posterior.flat)]
    if isinstance(state, Weighted) and state.fit is not None:
        return [
            _tails(state, next(iter(problem.batches(inference.requires.batch_kind, rng, 0, 1)))[1])
        ]
    return [_spread(state)] if isinstance(state, SwagState) else []


@torch.no_grad()
def _check_overlap(
    problem: Density, state: GaussianTrainingState | BlackBoxTrainingState, theta: Tensor
) -> Check:
    """Check that draws θ [S, P] of q could be weighted to the target π: the shape k̂ of log π(θ) −
    log q(θ).

    Source: Yao et al. (2018), section 3.2."""
    name = "q is near enough to weight its draws: Pareto k̂ is below its limit"
    if len(theta) < FEWEST_WEIGHTS:
        detail = f"{len(theta)} draws, {FEWEST_WEIGHTS} needed; raise inference.draws"
        return Check(name, None, detail)
    value = pareto_k(problem.log_density(theta) - state.module.log_density(theta))
    most = limits.pareto_k(len(theta))
    detail = f"k {value:.2f} of {len(theta)} draws, below {most:.2f} asked"
    return Check(name, value < most, detail)


def _tails(state: Weighted, batch: Batch | None) -> Check:
    assert state.fit is not None
    n = len(state.theta) * max(state.t, 1)
    value = tail_growth(state.fit, state.model, batch)
    most = limits.pareto_k(max(n, 11))
    advice = (
        ""
        if value < most
        else "; weights grow further out than any draw: inference.proposal=student_t, a lower dof"
    )
    return Check(
        "the proposal's tails are as heavy as the target's",
        value < most,
        f"k {value:.2f} beyond the draws, below {most:.2f} asked{advice}",
    )


def _check_search_convergence(state: Searches) -> Check:
    """Check that the best of the restarts has converged."""
    best = state.best
    detail = f"the best of {len(state.runs)} starts after {best.iteration} iterations"
    detail += (
        ""
        if best.converged
        else f", largest derivative {float(best.gradient.abs().max()):.2g} nats; raise steps"
    )
    return Check("the maximum of the likelihood is reached", best.converged, detail)


def _spread(state: SwagState) -> Check:
    """Check that SWAG's Gaussian has a spread.

    Variances below the rounding error of θ̄² − (θ̄)² count as zero, and so does a spread
    that is negligible relative to the size of the weights.
    """
    rounding = 10 * torch.finfo(state.mean.dtype).eps * state.square
    # share of the coordinates
    still = (state.square - state.mean.square() <= rounding).double().mean()
    name = "SWAG's Gaussian has a spread"
    if state.n < 2:
        return Check(
            name,
            False,
            f"{state.n} points collected, 2 needed; raise steps, or lower inference.burn_in or every",
        )
    detail = f"{state.n} points, {float(still):.1%} of the weights without a variance"
    variance = (state.square - state.mean.square()).clamp_min(0).max()
    collapsed = bool(still == 1) or bool(variance <= LEAST_SPREAD**2 * state.mean.square().mean())
    detail += f", largest sd {float(variance.sqrt()):.2g}" if still < 1 else ""
    return Check(
        name, not collapsed, detail + ("; raise inference.collect_lr" if collapsed else "")
    )
