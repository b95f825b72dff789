"""Interval arithmetic for networks: bounds of affine maps, activations and margins between classes.

Bounds hold for floating-point results, not only for exact arithmetic: an inner product of n terms,
in any order, differs from the exact one by at most γ_n Σ|w_i h_i| with γ_n = n u/(1 − n u) and the
unit roundoff u of the format.  Every bound is computed in double precision and widened by twice
that error.  (Products in a reduced format, such as TF32, or by transforms, such as Winograd's, have
larger errors and are not covered.)

Source: Gowal et al. (2018), eqs. (6)-(9); Higham (2002), section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Ends = tuple[Tensor, Tensor]  # lower and upper ends, of the same shape


class IntervalVector(NamedTuple):
    """The vectors between two ends [..., B, in]."""

    low: Tensor
    high: Tensor

    @property
    def largest(self) -> Tensor:
        """Largest |h_i| [..., B, in]."""
        return torch.maximum(self.low.abs(), self.high.abs())

    def image(self, weight: Tensor, bias: Tensor) -> Ends:
        """Ends of W h + b, W μ + b ± |W| r with μ = (low + high)/2, r = (high − low)/2: W [..., out,
        in], b [..., out] -> [..., B, out]."""
        centre = (self.low + self.high) / 2 @ weight.mT + bias.unsqueeze(-2)
        radius = (self.high - self.low) / 2 @ weight.abs().mT
        return centre - radius, centre + radius

    def rows(self, index: Tensor) -> IntervalVector:
        """Select rows."""
        return IntervalVector(self.low[..., index, :], self.high[..., index, :])

    def widen(self, by: Tensor) -> IntervalVector:
        """Move the ends outwards."""
        return IntervalVector(self.low - by, self.high + by)

    def intersect(self, other: Ends) -> IntervalVector:
        """Intersection of two bounds of the same quantity, that is, the tighter of both at each
        end.
        """
        return IntervalVector(torch.maximum(self.low, other[0]), torch.minimum(self.high, other[1]))


@dataclass(frozen=True)
class Perturbations:
    """The inputs x + δ that an attack of one size may reach from B rows: δ between two ends, and in
    a ball ‖δ‖ ≤ ε in L2 or L1, or with a limited number of changed words."""

    x: Tensor  # [B, D], double precision
    low: Tensor  # smallest δ [B, D]
    high: Tensor  # largest δ [B, D]
    norm: Literal["l2", "l1"] | None = None  # None if only the ends apply, as in L∞
    eps: float = torch.inf  # radius ε of the norm
    words: int | None = None  # number of coordinates that may change, each to its nonzero end

    @property
    def largest(self) -> Tensor:
        """Largest |x_i + δ_i| [B, D]."""
        return torch.maximum((self.x + self.low).abs(), (self.x + self.high).abs())

    @property
    def l2_norms(self) -> Tensor:
        """An upper bound of ‖δ‖₂ for each row [B], tight unless both the ball and the ends are
        active."""
        longest = torch.maximum(-self.low, self.high)
        if self.words is not None:
            longest = longest.topk(min(self.words, longest.shape[1]), 1).values
        length = longest.norm(dim=1)
        return length if self.norm is None else length.clamp_max(self.eps)  # ‖δ‖₂ ≤ ‖δ‖₁

    def rows(self, index: Tensor) -> Perturbations:
        """Select rows."""
        return replace(self, x=self.x[index], low=self.low[index], high=self.high[index])

    def image(self, weight: Tensor, bias: Tensor) -> Ends:
        """Bounds of W (x + δ) + b over all δ, W [..., out, D], b [..., out]: [..., B, out] each.

        Words: W x + b plus the sum of the largest effects of changes.  Otherwise W δ lies between
        Σ_i of its smallest and of its largest terms, and within ±ε ‖W_i‖_*.
        """
        middle = self.x @ weight.mT + bias.unsqueeze(-2)  # [..., B, out]
        if self.words is not None:
            effects = weight.unsqueeze(-3) * (self.low + self.high).unsqueeze(-2)
            return middle - self._sum_largest(-effects), middle + self._sum_largest(effects)
        centre = (self.low + self.high) / 2 @ weight.mT
        radius = (self.high - self.low) / 2 @ weight.abs().mT
        low = centre - radius
        high = centre + radius
        if self.norm is not None:
            reach = self.eps * self.dual(weight, -1).unsqueeze(-2)
            low = torch.maximum(low, -reach)
            high = torch.minimum(high, reach)
        return middle + low, middle + high

    def dual(self, weight: Tensor, dim: int | tuple[int, ...]) -> Tensor:
        """Dual norm ‖w‖_* of weights: L2 for L2, L∞ for L1."""
        return weight.square().sum(dim).sqrt() if self.norm == "l2" else weight.abs().amax(dim)

    def _sum_largest(self, effects: Tensor) -> Tensor:
        """Sum of the largest positive effects for the allowed number of changed words: [..., B,
        out, D] -> [..., B, out]."""
        count = min(self.words or 0, effects.shape[-1])
        return effects.clamp_min(0).topk(count, -1).values.sum(-1)


Reach = IntervalVector | Perturbations  # sets of vectors with known ranges of affine maps


def unit_roundoff(dtype: torch.dtype) -> float:
    """Largest relative error of an operation in a format."""
    return torch.finfo(dtype).eps / 2


def rounding_error(terms: int, unit: float) -> float:
    """2 γ_{n+2}, twice the relative error of an inner product of n terms and a bias."""
    n = terms + 2
    return 2 * n * unit / (1 - n * unit)


def affine_bounds(weight: Tensor, bias: Tensor, h: Reach, unit: float) -> IntervalVector:
    """Bounds of W h + b in floating point.

    Args:
        weight: W [..., out, in].
        bias: b [..., out].
        h: set of inputs of the layer, for B rows.
        unit: unit roundoff of the computation.

    Returns:
        Ends [..., B, out].
    """
    return IntervalVector(*h.image(weight, bias)).widen(_rounding_slack(weight, bias, h, unit))


def _rounding_slack(weight: Tensor, bias: Tensor, h: Reach, unit: float) -> Tensor:
    """Largest rounding error of W h + b, relative to |W| |h| + |b| ≥ |W h + b| [..., B, out]."""
    size = h.largest @ weight.abs().mT + bias.abs().unsqueeze(-2)
    return rounding_error(weight.shape[-1], unit) * size


def margin_bounds(
    weight: Tensor, bias: Tensor, h: Reach, y: Tensor, classes: int, unit: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Lower bounds of f_y − f_c of a last layer f = W h + b, as one map with rows W_y − W_c.

    They are no looser than the difference of the bounds of f_y and f_c.

    Args:
        weight: W [K, T C, in], with the C classes of a task adjacent.
        bias: b [K, T C].
        h: set of inputs of the layer, for B rows.
        y: class numbers [B, T]; negative ones are missing, and their bounds are −∞.
        classes: C.
        unit: unit roundoff of the computation.

    Returns:
        The bounds [K, B, T, C], infinite where c = y, and ends of f [K, B, T, C].

    Source: Gowal et al. (2018), section 3 (elision of the last layer).
    """
    slack = _rounding_slack(weight, bias, h, unit)  # [K, B, T C]
    low, high = (
        end.unflatten(-1, (-1, classes))
        for end in IntervalVector(*h.image(weight, bias)).widen(slack)
    )
    slack = slack.unflatten(-1, (-1, classes))
    lower = torch.full_like(low, -torch.inf)
    for task in range(y.shape[1]):
        W = weight.unflatten(1, (-1, classes))[:, task]  # [K, C, in]
        b = bias.unflatten(1, (-1, classes))[:, task]
        for c in y[:, task].unique().tolist():
            if c < 0:
                continue
            rows = (y[:, task] == c).nonzero()[:, 0]
            least, _ = h.rows(rows).image(W[:, c : c + 1] - W, b[:, c : c + 1] - b)
            own_slack = slack[:, rows, task]
            least = least - own_slack - own_slack[..., c : c + 1]
            least[..., c] = torch.inf
            lower[:, rows, task] = least
    return lower, low, high
