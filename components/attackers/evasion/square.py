"""The square attack."""

from __future__ import annotations

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.attackers.criteria import margins
from components.attackers.target import TargetedAttack
from components.contracts.attackers import Evasion
from components.contracts.roles import AboveZeroToOne
from components.contracts.streams import Rng
from components.contracts.victim import NormName, Victim
from components.registry import register

# steps, out of 10,000 queries, at which the area of squares halves
HALVINGS = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)


@register("attacker", "square")
class Square(TargetedAttack, Evasion):
    """Square attack: random squares of ±ε, kept if they lower the true class's margin.

    It uses only queries, without gradients.  δ_0 = ±ε in vertical stripes; at query i a square of
    side h, h² = p(i) H W, at a random place gets δ = ±ε of one random sign per channel, and
    stays if log p(y) − max_c log p(c) falls (rises, for a target).  p is halved by a schedule over
    ``queries``.  If the inputs are not images, a window of p(i) D neighbouring inputs replaces the
    square.  Broken rows stop their queries.  x [B, D], y [B, T].

    Source: Andriushchenko et al. (2020), Algorithms 1 and 2.
    """

    follows_gradient = False
    knowledge = "black box"

    queries: PositiveInt
    p: AboveZeroToOne

    def measure(self) -> NormName:
        return "linf"

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        if eps == 0:
            return x.clone()
        labels = self.labels(y)
        channels, height, width = image_size(victim, x.shape[1])
        g = rng.attack

        def signs(*shape: int) -> Tensor:
            return 2.0 * torch.randint(2, shape, generator=g, device=x.device).to(x) - 1

        stripes = signs(len(x), channels, 1, width).expand(-1, -1, height, -1).flatten(1)
        best = x.clone()
        value = self._margin(victim, x, labels, g)  # also a query: broken rows stay unchanged
        rows = (value >= 0).nonzero()[:, 0]
        value[rows] = torch.inf  # the search starts at the stripes, better or not
        down = torch.arange(height, device=x.device)[:, None]
        across = torch.arange(width, device=x.device)
        for query in range(self.queries - 1):
            if len(rows) == 0:
                break
            if query == 0:
                candidate = victim.clip((x + eps * stripes)[rows])
            else:
                h, w = _window(self.p * 0.5 ** _count_halvings(query, self.queries), height, width)
                # Positions for all rows, so that a row's positions do not depend on which others
                # are broken.
                top = torch.randint(height - h + 1, (len(x), 1, 1), generator=g, device=x.device)[
                    rows
                ]
                left_edge = torch.randint(
                    width - w + 1, (len(x), 1, 1), generator=g, device=x.device
                )[rows]
                sign = signs(len(x), channels, 1, 1)[rows]
                # [b, H, W]
                inside = (
                    (down >= top)
                    & (down < top + h)
                    & (across >= left_edge)
                    & (across < left_edge + w)
                )
                inside = inside.unsqueeze(1).expand(-1, channels, -1, -1).flatten(1)
                perturbed = x[rows] + eps * sign.expand(-1, -1, height, width).flatten(1)
                candidate = victim.clip(torch.where(inside, perturbed, best[rows]))
            now = self._margin(victim, candidate, labels[rows], g)
            better = now < value[rows]
            best[rows[better]] = candidate[better]
            value[rows[better]] = now[better]
            rows = rows[value[rows] >= 0]
        return best

    def _margin(self, victim: Victim, x: Tensor, y: Tensor, generator: torch.Generator) -> Tensor:
        """The margin to bring below zero [B]: the true class's, or minus the target's."""
        with torch.no_grad():
            margin = margins(victim.answers(x, generator), y)
        return margin if self.target is None else -margin


def image_size(victim: Victim, inputs: int) -> tuple[int, int, int]:
    """Channels, height and width of a row; a flat row is an image of height 1."""
    shape = victim.image_shape
    if shape is None:
        return 1, 1, inputs
    channels, height, width = (1, *shape) if len(shape) == 2 else shape
    return channels, height, width


def _count_halvings(query: int, queries: int) -> int:
    return sum(query * 10_000 / queries > threshold for threshold in HALVINGS)


def _window(p: float, height: int, width: int) -> tuple[int, int]:
    """Height and width of a window with share p of the area, at least one input."""
    if height == 1:
        return 1, max(1, round(p * width))
    side = max(1, round((p * height * width) ** 0.5))
    return min(side, height), min(side, width)
