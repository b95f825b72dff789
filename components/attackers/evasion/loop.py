"""The loop of all gradient attacks within a ball; the norm determines start, direction and
projection."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.attackers.criteria import RANKS, is_misclassified
from components.attackers.norms import NORMS, Ball, Box, feasible_set, scale
from components.contracts.victim import Criterion, NormName, Precision, Victim
from components.errors import QuestionableConfigWarning
from components.maths.spacing import row_numbers

Target = int | None
SLOW = (
    "attacker.precision=bfloat16: this CPU does not multiply bfloat16 natively (AVX512-BF16, "
    "AMX), so attacks are not faster; use attacker.precision=full"
)


@dataclass(frozen=True)
class Ascent:
    """Configuration of an ascent: ``steps`` of α = ``step_size`` · ε, from a random point of the
    ball or from x itself."""

    norm: NormName
    steps: int
    step_size: float  # α / ε
    random_start: bool = False
    restarts: int = 1
    momentum: float = 0.0
    target: Target = None  # class to be predicted; None means any except the true one
    # quantity lowered for the true class, or raised for the target
    criterion: Criterion = "cross_entropy"
    stop_when_broken: bool = True
    # of gradients; success is judged in full precision
    precision: Precision = "full"


class Endpoints:
    """Final x' per row with its value (larger: stronger) and an indicator of success."""

    def __init__(self, x: Tensor):
        self.points = x.clone()  # [B, D]
        self.value = x.new_full((len(x),), torch.nan)  # none yet [B]
        self.broken = x.new_zeros(len(x), dtype=torch.bool)

    def rows(self, pending: bool) -> Tensor:
        """Indices of the rows, with ``pending`` only of unbroken ones."""
        return (~self.broken | (not pending)).nonzero()[:, 0]

    def record(self, rows: Tensor, points: Tensor, value: Tensor, broken: Tensor) -> None:
        """Set some of the rows."""
        self.points[rows] = points
        self.value[rows] = value
        self.broken[rows] = broken

    def offer(self, rows: Tensor, points: Tensor, value: Tensor, broken: Tensor) -> None:
        """Set the rows for which the attempt is better than the current point.

        A broken point is better than an unbroken one; otherwise the larger value is better, and
        the first of equal ones.
        """
        was_broken = self.broken[rows]
        # a broken point is never replaced by an unbroken one
        higher = (broken == was_broken) & ~(value <= self.value[rows])
        better = ((broken & ~was_broken) | higher).nonzero()[:, 0]
        self.record(rows[better], points[better], value[better], broken[better])


@dataclass
class ActiveRows:
    """Rows that an ascent still moves, A of B, and their feasible set."""

    rows: Tensor  # their indices [A]
    points: Tensor  # x + δ [A, D]
    labels: Tensor  # [A, T]
    feasible: Ball | Box
    average: Tensor  # m of the momentum [A, D], without momentum [A, 0]

    def select(self, indices: Tensor) -> ActiveRows:
        """Some of the active rows, by their positions among them."""
        return ActiveRows(
            self.rows[indices],
            self.points[indices],
            self.labels[indices],
            self.feasible.of(indices),
            self.average[indices],
        )

    def step(self, direction: Tensor, size: float) -> None:
        """Move the points [A, D], and project them to the feasible set."""
        self.points = self.feasible.project(self.points.add_(direction, alpha=size))


def ascend(
    victim: Victim, x: Tensor, y: Tensor, generator: torch.Generator, eps: float, how: Ascent
) -> Tensor:
    """x' with the smallest J(y, x') (or largest J(target, x')) found by the ascent within ‖x' − x‖
    ≤ ε.

    δ ← Π_{‖·‖≤ε}(δ + α u(m)),  m ← μ m + g/‖g‖₁,  g = −∇_x J(y, x + δ);  J is log p(y|x) or another criterion, u the
    norm's steepest direction, and x + δ is clipped to the bounds.  If only success matters, a
    broken row stops where it broke; among several restarts a row keeps the first successful one,
    else the one with the largest loss.  For random predictions rows do not stop, because a row at
    the boundary that is broken in one draw may be correct in the next.

    Source: Madry et al. (2018), section 2.1; Dong et al. (2018), Algorithm 1 (momentum)."""
    if eps == 0:
        return x.clone()
    if how.stop_when_broken and victim.is_stochastic(x):
        how = replace(how, stop_when_broken=False)
    if x.device.type == "cpu" and not multiplies(how.precision):
        warnings.warn(QuestionableConfigWarning(SLOW), stacklevel=1)
    victim = victim.round_gradient(how.precision).soften(how.norm)
    labels = y if how.target is None else torch.where(y >= 0, how.target, y)
    if how.restarts == 1:  # nothing to compare
        return _climb(victim, x, labels, generator, eps, how).points
    best = Endpoints(x)
    for _ in range(how.restarts):
        rows = best.rows(pending=how.stop_when_broken)
        if len(rows) == 0:
            break
        attempt = _climb(victim, x[rows], labels[rows], generator, eps, how)
        best.offer(rows, attempt.points, attempt.value, attempt.broken)
    return best.points


def multiplies(precision: Precision) -> bool:
    """True if the CPU supports multiplication in that format natively."""
    return precision == "full" or torch.cpu._is_avx512_bf16_supported()


def _climb(
    victim: Victim, x: Tensor, y: Tensor, generator: torch.Generator, eps: float, how: Ascent
) -> Endpoints:
    """Run one restart; values and success are complete only if there are several restarts."""
    norm = NORMS[how.norm]
    towards = 1.0 if how.target is not None else -1.0
    start = x + norm.start(x, eps, generator) if how.random_start else x.clone()
    ended = Endpoints(x)
    active = ActiveRows(
        rows=row_numbers(x),
        points=victim.clip(start),
        labels=y,
        feasible=feasible_set(how.norm, x, eps, victim.bounds),
        average=torch.zeros_like(x) if how.momentum > 0 else x[:, :0],
    )
    for _ in range(how.steps):
        if how.stop_when_broken:
            answer = victim.answer(
                active.points, active.labels, generator, how.criterion, aim=how.target is None
            )
            gradient = answer.gradient
            broken = answer.broken if how.target is None else ~answer.broken
            if bool(broken.any()):
                ended.record(active.rows, active.points, towards * answer.objective, broken)
                unbroken = (~broken).nonzero()[:, 0]
                if len(unbroken) == 0:
                    return ended
                active = active.select(unbroken)
                gradient = gradient[unbroken]
        else:  # unused during the ascent
            gradient = victim.input_gradient(active.points, active.labels, generator, how.criterion)
        if how.momentum > 0:
            gradient = gradient / scale(gradient)
            active.average = how.momentum * active.average + gradient / gradient.abs().sum(
                1, keepdim=True
            ).clamp_min(1.0)
            gradient = active.average
        # Directions are odd functions, so ascent is along the gradient or its negative.
        active.step(norm.steepest(gradient), towards * how.step_size * eps)
    if how.restarts == 1:
        ended.points[active.rows] = active.points
        return ended
    with torch.no_grad():
        predictive = victim.answers(active.points, generator)
        value = towards * RANKS[how.criterion](predictive, active.labels)
    broken = is_misclassified(predictive, active.labels) == (how.target is None)
    ended.record(active.rows, active.points, value, broken)
    return ended
