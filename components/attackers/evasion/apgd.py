"""Auto-PGD."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.attackers.criteria import RANKS, is_misclassified, next_classes
from components.attackers.evasion.ascent import InBall, InputGradientAttack
from components.attackers.evasion.loop import Endpoints
from components.attackers.norms import NORMS, feasible_set
from components.attackers.target import TargetedAttack
from components.contracts.roles import AboveZeroToOne, ZeroToOne
from components.contracts.streams import Rng
from components.contracts.victim import Criterion, Victim
from components.maths.spacing import row_numbers
from components.registry import register

FIRST = 0.22
CHECKPOINT_DECREMENT = 0.03
LEAST = 0.06  # of periods between checkpoints, as shares of the steps


@dataclass
class ApgdState:
    """Positions of rows in an ascent, and their progress since the last checkpoint."""

    here: Tensor  # [B, D]
    last: Tensor  # [B, D]
    loss: Tensor  # [B]
    gradient: Tensor  # ascent direction of the loss [B, D]
    best: Tensor  # [B, D]
    best_gradient: Tensor  # [B, D]
    peak: Tensor  # the loss of ``best`` [B]
    eta: Tensor  # [B]
    eta_before: Tensor  # at the last checkpoint [B]
    peak_before: Tensor  # [B]
    gains: Tensor  # number of steps since then that raised the loss [B]

    def of(self, rows: Tensor) -> ApgdState:
        """The state restricted to some of the rows."""
        return ApgdState(**{name: value[rows] for name, value in vars(self).items()})


@register("attacker", "apgd")
class APGD(InBall, TargetedAttack, InputGradientAttack):
    """Auto-PGD: projected gradient ascent with momentum and an adaptive step size.

    z = Π(x_k + η u(∇f(x_k))),  x_{k+1} = Π(x_k + α(z − x_k) + (1 − α)(x_k − x_{k−1})),
    η_0 = 2ε, α = ``momentum``; f = −J.
    At checkpoints w_j = ⌈p_j ``steps``⌉, p_1 = 0.22,
    p_{j+1} = p_j + max(p_j − p_{j−1} − 0.03, 0.06), η is halved and the row returns to its
    best point if fewer than ``rho`` of the steps since w_{j−1} raised f, or if neither η nor max f
    has changed since.  With ``n_targets`` = K each row has one ascent towards each of the K most
    likely classes except the true one, by the targeted difference-of-logits ratio if ``criterion``
    is dlr; any wrong class is a success.  Values of f are compared on a scale that does not
    saturate for confident networks.  x [B, D], y [B, T].

    Raises:
        ConfigMismatchError: the victim has no gradient with respect to its input.

    Source: Croce and Hein (2020), Algorithm 1, eqs (6) and (7).
    """

    steps: PositiveInt
    restarts: PositiveInt
    criterion: Criterion
    n_targets: PositiveInt | None
    momentum: AboveZeroToOne
    rho: ZeroToOne
    stop_when_broken: bool

    def minimised_criterion(self) -> Criterion:
        # for two classes use the margin
        return "margin" if self.criterion == "dlr" and self.n_targets else self.criterion

    def is_iterative(self) -> bool:
        return self.target is None and self.steps > 1

    def without_early_stop(self) -> Self:
        return self.model_copy(update={"stop_when_broken": False})

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        if eps == 0:
            return x.clone()
        stop = self.stop_when_broken and not victim.is_stochastic(x)
        labels = self.labels(y)
        victim = victim.soften(self.norm)
        others: Sequence[Tensor | None] = [None]  # target classes of rows, one ascent each
        if self.n_targets is not None and self.target_class is None:
            with torch.no_grad():
                others = next_classes(victim.answers(x, rng.attack), y, self.n_targets)
        best = Endpoints(x)
        for other in (other for other in others for _ in range(self.restarts)):
            # for all rows, because they are independent
            start = NORMS[self.norm].start(x, eps, rng.attack)
            rows = best.rows(pending=stop)
            if len(rows) == 0:
                break
            attempt = self._climb(
                victim=victim,
                x=x[rows],
                start=start[rows],
                labels=labels[rows],
                towards=None if other is None else other[rows],
                generator=rng.attack,
                eps=eps,
                stop=stop,
            )
            best.offer(rows, attempt.points, attempt.value, attempt.broken)
        return best.points

    def _climb(
        self,
        victim: Victim,
        x: Tensor,
        start: Tensor,
        labels: Tensor,
        towards: Tensor | None,
        generator: torch.Generator,
        eps: float,
        stop: bool,
    ) -> Endpoints:
        """One ascent of each row, with values of f; it ends at the largest f, or at the first broken
        point."""
        sign = -1.0 if self.target_class is None else 1.0  # f = sign J
        steepest = NORMS[self.norm].steepest
        ball = feasible_set(self.norm, x, eps, victim.bounds)

        def look(at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            answer = victim.answer(at, labels, generator, self.criterion, towards=towards)
            predictive = answer.predictive
            objective = (
                RANKS[self.criterion](predictive, labels) if towards is None else answer.objective
            )
            return (
                sign * objective,
                sign * answer.gradient,
                is_misclassified(predictive, labels) == (self.target_class is None),
            )

        ended = Endpoints(x)
        rows = row_numbers(x)  # active rows
        current = ball.project(x + start)
        loss, gradient, broken = look(current)
        eta = torch.full_like(loss, 2 * eps)
        p = ApgdState(
            here=current,
            last=current,
            loss=loss,
            gradient=gradient,
            best=current,
            best_gradient=gradient,
            peak=loss,
            eta=eta,
            eta_before=eta,
            peak_before=loss,
            gains=torch.zeros_like(loss),
        )
        checkpoints = _checkpoints(self.steps)
        last_checkpoint = 0
        for k in range(1, self.steps + 1):
            if stop and bool(broken.any()):
                ended.record(rows, p.here, p.loss, broken)
                unbroken = (~broken).nonzero()[:, 0]
                rows = rows[unbroken]
                labels = labels[unbroken]
                ball = ball.of(unbroken)
                p = p.of(unbroken)
                towards = None if towards is None else towards[unbroken]
                if len(rows) == 0:
                    return ended
            z = ball.project(p.here + p.eta[:, None] * steepest(p.gradient))
            candidate = (
                z
                if k == 1
                else p.here + self.momentum * (z - p.here) + (1 - self.momentum) * (p.here - p.last)
            )
            candidate = ball.project(candidate.clone())
            loss, gradient, broken = look(candidate)
            up = loss > p.peak
            p.gains = p.gains + (loss > p.loss)
            p.best = torch.where(up[:, None], candidate, p.best)
            p.best_gradient = torch.where(up[:, None], gradient, p.best_gradient)
            p.peak = torch.where(up, loss, p.peak)
            p.last = p.here
            p.here = candidate
            p.loss = loss
            p.gradient = gradient
            if k in checkpoints and not (stop and bool(broken.all())):
                _halve(
                    p,
                    self.rho * (k - last_checkpoint),
                    ~broken if stop else torch.ones_like(broken),
                )
                last_checkpoint = k
        end = torch.where((broken & stop)[:, None], p.here, p.best)
        ended.record(rows, end, p.peak, look(end)[2])
        return ended


def _halve(p: ApgdState, enough: float, going: Tensor) -> None:
    """Halve the step of active rows ``going`` [B] bool with too little progress, and return them to
    their best point.

    Source: Croce and Hein (2020), conditions 1 and 2 of section 3."""
    stuck = going & ((p.gains < enough) | ((p.eta == p.eta_before) & (p.peak == p.peak_before)))
    p.eta_before = p.eta
    p.peak_before = p.peak
    p.eta = torch.where(stuck, p.eta / 2, p.eta)
    p.here = torch.where(stuck[:, None], p.best, p.here)
    p.gradient = torch.where(stuck[:, None], p.best_gradient, p.gradient)
    p.loss = torch.where(stuck, p.peak, p.loss)
    p.gains = torch.zeros_like(p.gains)


def _checkpoints(steps: int) -> set[int]:
    """⌈p_j N⌉ for the shares p_j up to 1."""
    last = 0.0
    share = FIRST
    out = set()
    while share <= 1 + 1e-9:
        out.add(math.ceil(share * steps - 1e-9))
        last, share = share, share + max(share - last - CHECKPOINT_DECREMENT, LEAST)
    return out
