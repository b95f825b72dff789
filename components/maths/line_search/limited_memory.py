"""Limited-memory BFGS with a strong-Wolfe line search, one iteration at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from components.errors import NumericalError
from components.maths.line_search.strong_wolfe import Trial, strong_wolfe

Evaluation = tuple[float, Tensor, dict[str, Tensor]]  # f, ∇f, and the terms of f
Evaluate = Callable[[Tensor], Evaluation]  # at θ
# pairs with sᵀ y below this multiple of ‖s‖ ‖y‖ would corrupt the inverse Hessian
CURVATURE_FLOOR = 1e-10


class Tolerance(NamedTuple):
    """Tolerances for convergence of a run."""

    value: float  # largest decrease of f in an iteration, relative to |f|
    gradient: float  # largest |∂f/∂θ|


@dataclass
class LBFGSRun:
    """One restart: its position and curvature information."""

    theta: Tensor  # [P]
    value: float  # f
    gradient: Tensor  # ∇f [P]
    S: Tensor  # steps s = θ' − θ of the last ``memory`` iterations [K, P]
    Y: Tensor  # changes of the gradient y = ∇f' − ∇f [K, P]
    terms: dict[str, Tensor] = field(default_factory=dict)  # of the bound
    iteration: int = 0
    evaluations: int = 0
    step_size: float = 0.0
    converged: bool = False

    def forget(self) -> None:
        """Discard the curvature pairs, so that the next step is along −∇f."""
        self.S = self.S[:0]
        self.Y = self.Y[:0]


def init_lbfgs(theta: Tensor) -> LBFGSRun:
    """A run that starts at θ [P]."""
    no_pairs = theta.new_zeros(0, theta.numel())  # no curvature pairs yet
    return LBFGSRun(theta, float("inf"), torch.zeros_like(theta), no_pairs, no_pairs)


def find_direction(gradient: Tensor, S: Tensor, Y: Tensor) -> Tensor:
    """−H ∇f by the two-loop recursion, from the pairs s = θ' − θ and y = ∇f' − ∇f [K, P], oldest
    first.

    Source: Nocedal and Wright (2006), Algorithm 7.4."""
    q = -gradient
    K = S.shape[0]
    rho = 1 / (S * Y).sum(1)  # [K]
    alpha = [torch.zeros(())] * K
    for i in reversed(range(K)):
        alpha[i] = rho[i] * (S[i] @ q)
        q = torch.addcmul(q, -alpha[i], Y[i])
    if K:
        q = q / (rho[-1] * (Y[-1] @ Y[-1]))  # eq. (7.20)
    for i in range(K):
        q = torch.addcmul(q, alpha[i] - rho[i] * (Y[i] @ q), S[i])
    return q


def iterate(
    run: LBFGSRun, evaluate: Evaluate, memory: int, tolerance: Tolerance, max_evaluations: int
) -> None:
    """Advance a run's θ by one iteration; set ``converged`` when f or its gradient stops
    changing."""
    if run.iteration == 0:
        run.value, run.gradient, run.terms = evaluate(run.theta)
        run.evaluations += 1
    run.iteration += 1
    theta = run.theta
    value = run.value
    gradient = run.gradient
    if float(gradient.abs().max()) <= tolerance.gradient:
        run.converged = True
        return
    along = find_direction(gradient, run.S, run.Y)
    slope = float(gradient @ along)
    fresh = run.S.shape[0] == 0
    if not slope < 0:  # curvature pairs are corrupted by rounding: restart from the gradient
        along = -gradient
        slope = -float(gradient @ gradient)
        fresh = True
        run.forget()

    def phi(step: float) -> Trial:
        try:
            f, g, terms = evaluate(theta + step * along)
        except NumericalError:  # too long: the line search shortens it
            return Trial(step, float("inf"), float("nan"))
        return Trial(step, f, float(g @ along), (g, terms))

    first = min(1.0, 1.0 / float(gradient.norm())) if fresh else 1.0
    trial, evaluations = strong_wolfe(phi, Trial(0.0, value, slope), first, max_evaluations)
    run.evaluations += evaluations
    if trial is None:
        # no decrease along −H ∇f: discard H; without one along −∇f, rounding prevents any decrease
        run.converged = fresh
        run.forget()
        return
    new_gradient, run.terms = trial.found
    s = trial.step * along
    y = new_gradient - gradient
    if float(s @ y) > CURVATURE_FLOOR * float(s.norm() * y.norm()):
        # a new tensor, not a slice: BLAS rounding depends on the address, and pairs of a resumed
        # run are aligned
        oldest = max(run.S.shape[0] - memory + 1, 0)
        run.S, run.Y = torch.cat([run.S[oldest:], s[None]]), torch.cat([run.Y[oldest:], y[None]])
    run.theta = theta + trial.step * along
    run.value = trial.value
    run.gradient = new_gradient
    run.step_size = trial.step
    scale = max(abs(value), abs(trial.value), 1.0)
    run.converged = value - trial.value <= tolerance.value * scale
