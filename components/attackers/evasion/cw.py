"""The attack of Carlini and Wagner."""

from __future__ import annotations

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from components.attackers.evasion.ascent import MarginAttack
from components.attackers.norms import NORMS
from components.attackers.target import TargetedAttack
from components.contracts.roles import BetweenZeroAndOne
from components.contracts.streams import Rng
from components.contracts.victim import NormName, Victim
from components.maths.spacing import row_numbers
from components.registry import register

B1 = 0.9
B2 = 0.999
TINY = 1e-8  # of Adam, Kingma and Ba (2015)
SPREAD = 8.0  # spread of logit margins in nats for which the initial price c is calibrated


@register("attacker", "cw")
class CarliniWagner(TargetedAttack, MarginAttack):
    """Carlini and Wagner's L2 attack: the shortest perturbation found by a search over the price c,
    projected to ε.

    min_w ‖x'(w) − x‖₂² + c · max(Z_y − max_{i≠y} Z_i, −κ),  x'(w) = l + (u − l)(tanh w + 1)/2 in the bounds [l, u] (x' = w
    without bounds), by Adam; c by bisection for every row, multiplied by ten until an attack
    succeeds.  For a softmax, margins of log-probabilities equal margins of logits Z.  A row ends at
    its shortest successful x', or without success at the end of its last descent, projected to the
    ball.  A row stops as soon as an x' with ‖x' − x‖₂ ≤ ε succeeds, because further search does not
    affect a security evaluation.  x [B, D], y [B, T].

    Raises:
        ConfigMismatchError: the victim has no gradient with respect to its input.

    Source: Carlini and Wagner (2017), section VI.A."""

    searches: PositiveInt
    lr: PositiveFloat
    c: PositiveFloat
    kappa: NonNegativeFloat
    shrink: BetweenZeroAndOne

    def measure(self) -> NormName:
        return "l2"

    def is_iterative(self) -> bool:
        return self.target is None and self.steps > 1

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        if eps == 0:
            return x.clone()
        labels = self.labels(y)
        low = torch.zeros_like(x[:, 0])
        high = torch.full_like(x[:, 0], torch.inf)
        logits = victim.answers(x, torch.Generator(x.device).manual_seed(0)).logits
        spread = (logits.amax(-1) - logits.amin(-1)).amax((0, 2))
        c = self.c * (SPREAD / spread).clamp_max(1.0)  # [B]
        best = x.clone()
        shortest = torch.full_like(low, torch.inf)
        rows = row_numbers(x)
        for _ in range(self.searches):
            candidates, length, last = self._descend(
                victim, x[rows], labels[rows], c[rows], rng.attack, eps
            )
            won = length.isfinite()
            shorter = length < shortest[rows]
            never = ~won & shortest[rows].isinf()
            best[rows] = torch.where(
                shorter[:, None], candidates, torch.where(never[:, None], last, best[rows])
            )
            shortest[rows] = torch.minimum(length, shortest[rows])
            high[rows] = torch.where(won, torch.minimum(high[rows], c[rows]), high[rows])
            low[rows] = torch.where(won, low[rows], torch.maximum(low[rows], c[rows]))
            c = torch.where(high.isinf(), 10 * c, (low + high) / 2)
            rows = rows[shortest[rows] > eps]
            if len(rows) == 0:
                break
        return victim.clip(x + NORMS["l2"].project(best - x, eps))

    def _descend(
        self,
        victim: Victim,
        x: Tensor,
        y: Tensor,
        c: Tensor,
        generator: torch.Generator,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Adam from x at the prices c [B]: the shortest success (if any), its length (else ∞), and
        the last point."""
        sign = 1.0 if self.target is None else -1.0  # sign of the margin to lower
        w = _inverse(victim, x, self.shrink)
        m = torch.zeros_like(w)
        v = torch.zeros_like(w)
        best = x.clone()
        shortest = torch.full_like(c, torch.inf)
        last = x.clone()
        rows = row_numbers(x)
        for step in range(1, self.steps + 2):  # the last pass only evaluates the last step
            x_adv, slope = _image(victim, w[rows])
            answer = victim.answer(x_adv, y[rows], generator, "margin")
            margin = sign * answer.objective
            length = (x_adv - x[rows]).norm(dim=1)
            success = answer.broken if self.target is None else ~answer.broken
            success = success & (margin <= -self.kappa) & (length < shortest[rows])
            best[rows[success]] = x_adv[success]
            shortest[rows[success]] = length[success]
            last[rows] = x_adv
            is_running = shortest[rows] > eps
            if step > self.steps or not bool(is_running.any()):
                break
            pull = torch.where(margin > -self.kappa, c[rows] * sign, 0.0)[:, None] * answer.gradient
            gradient = ((2 * (x_adv - x[rows]) + pull) * slope)[is_running]
            rows = rows[is_running]
            m[rows] = B1 * m[rows] + (1 - B1) * gradient
            v[rows] = B2 * v[rows] + (1 - B2) * gradient.square()
            w[rows] -= (
                self.lr * (m[rows] / (1 - B1**step)) / ((v[rows] / (1 - B2**step)).sqrt() + TINY)
            )
        return best, shortest, last


def _image(victim: Victim, w: Tensor) -> tuple[Tensor, Tensor]:
    """x'(w) and dx'/dw, coordinate by coordinate."""
    if victim.bounds is None:
        return w.clone(), torch.ones_like(w)
    low, high = victim.bounds
    t = w.tanh()
    return low + (high - low) * (t + 1) / 2, (high - low) / 2 * (1 - t.square())


def _inverse(victim: Victim, x: Tensor, shrink: float) -> Tensor:
    """w as a function of x.

    ``shrink`` moves coordinates off the bounds, where w is infinite, for a nonzero gradient.
    """
    if victim.bounds is None:
        return x.clone()
    low, high = victim.bounds
    return torch.atanh(shrink * (2 * (x - low) / (high - low) - 1))
