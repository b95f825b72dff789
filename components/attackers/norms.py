"""Norms of gradient attacks, with start, step and projection.

δ [B, D] is the perturbation; every function treats rows independently.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.contracts.victim import NormName

TINY = 1e-12  # avoids division by zero for vectors of length 0


@dataclass(frozen=True)
class Norm:
    """‖δ‖ and the three functions of an attack within the ball ‖δ‖ ≤ ε."""

    size: Callable[[Tensor], Tensor]  # [B, D] -> [B]
    # like [B, D], ε -> uniform in the ball [B, D]
    start: Callable[[Tensor, float, torch.Generator], Tensor]
    # ascent direction of length at most one for a gradient [B, D]
    steepest: Callable[[Tensor], Tensor]
    # nearest point of the ball in L2, a new tensor [B, D]
    project: Callable[[Tensor, float], Tensor]


@dataclass(frozen=True)
class Ball:
    """The feasible set {x' : ‖x' − x‖ ≤ ε} within the bounds of the inputs, for rows x [B, D]."""

    norm: Norm
    origin: Tensor  # x [B, D]
    eps: float
    bounds: tuple[float, float] | None

    def of(self, rows: Tensor) -> Ball:
        """The ball restricted to some of the rows."""
        return replace(self, origin=self.origin[rows])

    def project(self, moved: Tensor) -> Tensor:
        """Project points [B, D] to the ball and then to the bounds; may overwrite ``moved``."""
        projection = self.norm.project(moved.sub_(self.origin), self.eps).add_(self.origin)
        return projection if self.bounds is None else projection.clamp_(*self.bounds)


@dataclass(frozen=True)
class Box:
    """The L∞ ball and the bounds as one box, computed once, so that a step needs one pass over the
    pixels."""

    low: Tensor  # [B, D]
    high: Tensor  # [B, D]

    def of(self, rows: Tensor) -> Box:
        """The box restricted to some of the rows."""
        return Box(self.low[rows], self.high[rows])

    def project(self, moved: Tensor) -> Tensor:
        """Project points [B, D] to the box; overwrites ``moved``."""
        return moved.clamp_(self.low, self.high)


def feasible_set(
    name: NormName, origin: Tensor, eps: float, bounds: tuple[float, float] | None
) -> Ball | Box:
    """Feasible set of an attack on the rows x [B, D]."""
    if name != "linf":
        return Ball(NORMS[name], origin, eps, bounds)
    low = origin - eps
    high = origin + eps
    return Box(low, high) if bounds is None else Box(low.clamp_(*bounds), high.clamp_(*bounds))


def scale(gradient: Tensor) -> Tensor:
    """Power of two per row that scales the largest entry to [1, 2): [..., D] -> [..., 1].

    It is 1 for a row of zeros.  Division by it keeps all digits and the direction of a gradient.
    Without it, squares of entries below 1e-19 underflow in float32, and the gradient has length 0.
    """
    largest = gradient.abs().amax(-1, keepdim=True)
    # mantissas are in [1/2, 1)
    return torch.where(largest > 0, largest / (2 * largest.frexp().mantissa), 1.0)


def _uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    """Uniform draws in float64, independent of the dtype of ``like``.

    Attacks therefore have the same start for networks of both dtypes.
    """
    return torch.rand(like.shape, generator=generator, dtype=torch.float64, device=like.device).to(
        like.dtype
    )


def gaussian(like: Tensor, generator: torch.Generator) -> Tensor:
    """N(0, 1) like [B, D], drawn in float64 as in ``_uniform``."""
    return torch.randn(
        like.shape, generator=generator, dtype=torch.float64, device=generator.device
    ).to(like)


def _radii(like: Tensor, generator: torch.Generator) -> Tensor:
    """U^{1/D}: the length of a point drawn uniformly from the unit ball, for every row [B, 1]."""
    return _uniform(like[:, :1], generator) ** (1 / like.shape[1])


def _start_l2(like: Tensor, eps: float, generator: torch.Generator) -> Tensor:
    z = gaussian(like, generator)
    return eps * _radii(like, generator) * z / z.norm(dim=1, keepdim=True).clamp_min(TINY)


def _start_l1(like: Tensor, eps: float, generator: torch.Generator) -> Tensor:
    z = -torch.log1p(-_uniform(like, generator))  # exponential: z / Σz is uniform on the simplex
    signs = 2 * (_uniform(like, generator) < 0.5).to(z) - 1
    return eps * _radii(like, generator) * signs * z / z.sum(1, keepdim=True).clamp_min(TINY)


def _project_l2(delta: Tensor, eps: float) -> Tensor:
    return delta * (eps / delta.norm(dim=1, keepdim=True).clamp_min(TINY)).clamp_max(1.0)


def _project_l1(delta: Tensor, eps: float) -> Tensor:
    """Soft thresholding to a sum of ε (Duchi et al. 2008, Fig. 1)."""
    size = delta.abs()
    ordered = size.sort(1, descending=True).values
    excess = ordered.cumsum(1) - eps  # [B, D]
    count = torch.arange(1, delta.shape[1] + 1, device=delta.device, dtype=delta.dtype)
    rho = (ordered * count > excess).sum(1, keepdim=True).clamp_min(1)  # ρ [B, 1]
    level = (excess.gather(1, rho - 1) / rho).clamp_min(0.0)
    return delta.sign() * (size - level).clamp_min(0.0)


def _steepest_l2(gradient: Tensor) -> Tensor:
    scaled = gradient / scale(gradient)
    return scaled / scaled.norm(dim=1, keepdim=True).clamp_min(TINY)


def _steepest_l1(gradient: Tensor) -> Tensor:
    """Equal steps in the 5 % of coordinates with the largest gradient, because single coordinates
    would need a step per pixel.

    Source: Tramèr and Boneh (2019), section 4 (SLIDE)."""
    n_top = max(1, math.ceil(0.05 * gradient.shape[1]))
    top = gradient.abs().topk(n_top, 1).indices
    return torch.zeros_like(gradient).scatter(1, top, gradient.gather(1, top).sign() / n_top)


NORMS: dict[NormName, Norm] = {
    "linf": Norm(
        size=lambda delta: delta.abs().amax(1),
        start=lambda like, eps, generator: eps * (2 * _uniform(like, generator) - 1),
        steepest=torch.sign,
        project=lambda delta, eps: delta.clamp(-eps, eps),
    ),
    "l2": Norm(
        size=lambda delta: delta.norm(dim=1),
        start=_start_l2,
        steepest=_steepest_l2,
        project=_project_l2,
    ),
    "l1": Norm(
        size=lambda delta: delta.abs().sum(1),
        start=_start_l1,
        steepest=_steepest_l1,
        project=_project_l1,
    ),
}
