"""DeepFool."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor

from components.attackers.evasion.ascent import InBall, MarginAttack
from components.attackers.norms import NORMS, scale
from components.contracts.streams import Rng
from components.contracts.victim import Victim
from components.maths.spacing import row_numbers
from components.registry import register

TINY = 1e-12  # a class with a constant score is never the nearest


@register("attacker", "deepfool")
class DeepFool(InBall, MarginAttack):
    """DeepFool: steps to the nearest linearised decision boundary until the class changes.

    The perturbation is capped at ε.  With f_k = log p(k|x), w_k = ∇f_k − ∇f_y and
    g_k = f_k − f_y:  l = argmin_k |g_k|/‖w_k‖_q,
    r = |g_l|/‖w_l‖₂² w_l (L2, q = 2) or |g_l|/‖w_l‖₁ sign(w_l) (L∞, q = 1),
    x_{i+1} = clip(x_i + r);  x' = clip(x + Π_{‖·‖≤ε}((1 + η) Σ_i r_i)).
    For a softmax, differences of log-probabilities are differences of its logits.  Misclassified
    rows stay unchanged.  With several tasks, the nearest boundary of any task is used.  x [B, D], y
    [B, T].

    Raises:
        ConfigMismatchError: the victim has no gradient with respect to its input.

    Source: Moosavi-Dezfooli et al. (2016), Algorithm 2 and section 3.3.
    """

    norm: Literal["linf", "l2"]
    overshoot: Annotated[float, Field(ge=0)]

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        if eps == 0:
            return x.clone()
        total = torch.zeros_like(x)  # Σ r
        rows = row_numbers(x)
        for _ in range(self.steps):
            beyond = victim.clip(x[rows] + (1 + self.overshoot) * total[rows])
            rows = rows[~victim.broken(beyond, y[rows], rng.attack)]
            if len(rows) == 0:
                break
            x_adv = victim.clip(x[rows] + total[rows])
            total[rows] = x_adv - x[rows] + self._step(victim, x_adv, y[rows], rng.attack)
        return victim.clip(x + NORMS[self.norm].project((1 + self.overshoot) * total, eps))

    def _step(self, victim: Victim, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """Step r [B, D] to the nearest linearised boundary of all tasks and classes."""
        f, slope = victim.jacobian(x, generator)  # [B, T, C], [B, T, C, D]
        label = y.clamp_min(0).unsqueeze(-1)  # [B, T, 1]
        g = f - f.gather(-1, label)
        w = slope - slope.gather(2, label.unsqueeze(-1).expand(-1, -1, -1, slope.shape[-1]))
        power = scale(w)  # scales of g and w cancel, but squares of small entries would underflow
        w = w / power
        g = g / power.squeeze(-1)
        length = w.norm(dim=-1) if self.norm == "l2" else w.abs().sum(-1)  # ‖w‖_q [B, T, C]
        other = torch.ones_like(g, dtype=torch.bool).scatter(-1, label, False) & (y >= 0).unsqueeze(
            -1
        )
        distance = torch.where(
            other & (length > TINY), g.abs() / length.clamp_min(TINY), torch.inf
        ).flatten(1)
        best, nearest = distance.min(1)
        w = w.flatten(1, 2)[row_numbers(x), nearest]  # [B, D]
        direction = (
            w / w.norm(dim=1, keepdim=True).clamp_min(TINY) if self.norm == "l2" else w.sign()
        )
        return torch.where(best.isfinite(), best, 0.0).unsqueeze(1) * direction
