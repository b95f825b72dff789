"""Fast adaptive boundary attack."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor

from components.attackers.criteria import next_classes
from components.attackers.evasion.ascent import InBall, MarginAttack
from components.attackers.hyperplanes import project_to_plane
from components.attackers.norms import NORMS, scale
from components.contracts.roles import AboveZeroToOne, ZeroToOne
from components.contracts.streams import Rng
from components.contracts.victim import Victim
from components.registry import register


@register("attacker", "fab")
class FAB(InBall, MarginAttack):
    """Fast adaptive boundary attack: the smallest perturbation, by steps to the linearised boundary
    with a bias towards x.

    With g(x) = z_c(x) − z_y(x) for another class c, π its linearisation at x_i and P_π the
    projection on its plane within the bounds:  δ_i = P_π(x_i) − x_i,  δ_0 = P_π(x) − x,  a =
    min(‖δ_i‖/(‖δ_i‖ + ‖δ_0‖), ``alpha_max``), x_{i+1} = clip((1 − a)(x_i + η δ_i) + a (x + η δ_0)),
    η = ``overshoot``; a row that is broken there stores the point if it is its nearest so far, and
    continues from x + β (x_{i+1} − x), β = ``backward``.  The search runs class by class for the
    ``n_targets`` most likely ones except y; each later restart begins at a random point at half the
    distance of the nearest one (at most ε). A final bisection refines it.  x' is this point if it
    lies within ε, else x. x [B, D], y [B, T].

    Raises:
        ConfigMismatchError: the victim has no gradient with respect to its input.

    Source: Croce and Hein (2019), Algorithm 1; Croce and Hein (2020), section 5 (its targets)."""

    restarts: PositiveInt
    n_targets: PositiveInt
    alpha_max: ZeroToOne
    overshoot: Annotated[float, Field(ge=1)]
    backward: AboveZeroToOne
    final_steps: NonNegativeInt

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        if eps == 0:
            return x.clone()
        nearest, _ = self.search(victim, x, y, rng.attack, eps)
        return victim.clip(x + NORMS[self.norm].project(nearest - x, eps))

    def search(
        self, victim: Victim, x: Tensor, y: Tensor, generator: torch.Generator, eps: float
    ) -> tuple[Tensor, Tensor]:
        """The nearest broken point of each row (x itself if none lies within ε), and its distance
        (else ∞).

        Without a ball, ε = ∞, the search uses all its steps."""
        size = NORMS[self.norm].size
        wrong = victim.broken(x, y, generator)
        nearest = x.clone()
        length = torch.where(wrong, 0.0, torch.full_like(x[:, 0], torch.inf))
        with torch.no_grad():
            others = next_classes(victim.answers(x, generator), y, self.n_targets)
        for restart in range(self.restarts):
            for other in others:
                # for all rows, because they are independent
                start = NORMS[self.norm].start(x, 1.0, generator)
                rows = (length > (0 if eps == float("inf") else eps)).nonzero()[:, 0]
                if len(rows) == 0:
                    return nearest, length
                initial = x[rows]
                if restart > 0:
                    radius = 0.5 * length[rows].clamp_max(eps).nan_to_num(posinf=1.0)
                    initial = victim.clip(initial + radius.unsqueeze(1) * start[rows])
                points, distance = self._descend(
                    victim, x[rows], y[rows], other[rows], initial, generator
                )
                better = distance < length[rows]
                nearest[rows[better]] = points[better]
                length[rows[better]] = distance[better]
        low = x.clone()  # not broken
        for _ in range(self.final_steps):
            rows = (length.isfinite() & (length > 0)).nonzero()[:, 0]
            middle = (nearest[rows] + low[rows]) / 2
            broken = victim.broken(middle, y[rows], generator)
            nearest[rows[broken]] = middle[broken]
            low[rows[~broken]] = middle[~broken]
            length[rows] = size(nearest[rows] - x[rows])
        return nearest, length

    def _descend(
        self,
        victim: Victim,
        x: Tensor,
        y: Tensor,
        other: Tensor,
        here: Tensor,
        generator: torch.Generator,
    ) -> tuple[Tensor, Tensor]:
        """The nearest broken point on the path of each row from ``here`` [B, D], and its distance
        from x (∞ if none)."""
        size = NORMS[self.norm].size
        plane = (victim.bounds, self.norm)
        nearest = x.clone()
        length = torch.full_like(x[:, 0], torch.inf)
        for _ in range(self.steps):
            answer = victim.answer(here, y, generator, "margin", towards=other)
            power = scale(answer.gradient)
            w = answer.gradient / power  # of z_y − z_c
            b = answer.objective / power.squeeze(1) - (w * here).sum(1)
            near = project_to_plane(here, w, b, *plane) - here
            back = project_to_plane(x, w, b, *plane) - x
            near_size = size(near)
            back_size = size(back)
            share = (
                (near_size / (near_size + back_size).clamp_min(torch.finfo(x.dtype).tiny))
                .clamp_max(self.alpha_max)
                .unsqueeze(1)
            )
            candidate = (1 - share) * (here + self.overshoot * near) + share * (
                x + self.overshoot * back
            )
            here = victim.clip(candidate)
            broken = victim.broken(here, y, generator)
            distance = size(here - x)
            better = broken & (distance < length)
            nearest = torch.where(better[:, None], here, nearest)
            length = torch.where(better, distance, length)
            here = torch.where(broken[:, None], x + self.backward * (here - x), here)
        return nearest, length
