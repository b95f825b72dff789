"""Shifts u of observations, in units of the observation noise: their budget and search.

All R replicates are processed together; u [R, T, dy] is zero except at the attacked times [R, T],
and ‖u_t‖ ≤ ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.victim import FilterVictim
from components.maths.exponential.standard_draws import standard_normal, standard_uniform

LARGEST_STRETCH = 0.5  # share of the series that the first stretch of a random search covers
SMALLEST = 1e-12  # norm of a gradient, below which its direction is undefined


def within(u: Tensor, eps: float) -> Tensor:
    """The nearest shift with ‖u_t‖ ≤ ε at every time."""
    length = u.norm(dim=-1, keepdim=True)
    return torch.where(length > eps, u * (eps / length.clamp_min(SMALLEST)), u)


def random_signs(
    struck: Tensor, dy: int, eps: float, generator: torch.Generator, like: Tensor
) -> Tensor:
    """±ε/√dy in every coordinate of the attacked times: the whole budget, without optimisation."""
    bits = standard_uniform((*struck.shape, dy), generator, like) < 0.5
    return torch.where(bits, 1.0, -1.0).to(like) * (eps / math.sqrt(dy)) * struck.unsqueeze(-1)


@dataclass
class Strongest:
    """The shift of each replicate, among those evaluated, that raises the filter's error most."""

    u: Tensor  # [R, T, dy]
    error: Tensor  # [R]

    def keep(self, u: Tensor, error: Tensor) -> None:
        better = error > self.error
        self.error = torch.where(better, error, self.error)
        self.u = torch.where(better.view(-1, 1, 1), u, self.u)


def beginning(victim: FilterVictim, candidates: list[Tensor]) -> Strongest:
    """The best of the zero shift and the given candidates."""
    nothing = torch.zeros_like(victim.observations)
    best = Strongest(nothing, victim.error(nothing))
    for u in candidates:
        best.keep(u, victim.error(u))
    return best


def climb(
    victim: FilterVictim,
    struck: Tensor,
    eps: float,
    steps: int,
    step_size: float,
    starts: list[Tensor],
    candidates: list[Tensor],
) -> Tensor:
    """Projected gradient ascent of the filter's error from each start: u ← P_ε(u + α_k ε ∇_t/‖∇_t‖)
    time by time, with α_k = ``step_size`` (1 − k/K), because the maximum for a filter that rejects
    outliers lies inside the ball.  The best shift is kept."""
    best = beginning(victim, candidates)
    for u in starts:
        for k in range(steps):
            error, slope = victim.gradient(u)
            best.keep(u, error)
            along = slope / slope.norm(dim=-1, keepdim=True).clamp_min(SMALLEST)
            u = within(u + step_size * eps * (1 - k / steps) * along * struck.unsqueeze(-1), eps)
        best.keep(u, victim.error(u))
    return best.u


def search(
    victim: FilterVictim,
    struck: Tensor,
    eps: float,
    queries: int,
    start: Tensor,
    candidates: list[Tensor],
    generator: torch.Generator,
) -> Tensor:
    """Random search that queries only the filter's error.

    A proposal sets all shifts in a stretch of times, of decreasing length, to one vector with a
    random direction and a length that is ε or uniform below ε; it is kept if it raises the error.

    Source: Andriushchenko et al. (2020), with stretches of time instead of squares.
    """
    best = beginning(victim, [start, *candidates])
    r, times, dy = victim.observations.shape
    like = victim.observations
    when = torch.arange(times, device=struck.device)

    def uniform(*shape: int) -> Tensor:
        return standard_uniform(shape, generator, like)

    for q in range(queries):
        stretch = max(1, round(LARGEST_STRETCH * times * 0.5 ** (6 * q / queries)))
        first = (uniform(r, 1) * (times - stretch + 1)).long()  # [R, 1]
        inside = (when >= first) & (when < first + stretch) & struck  # [R, T]
        way = standard_normal((r, 1, dy), generator, like)
        full = uniform(r, 1, 1) < 0.5
        length = torch.where(full, 1.0, uniform(r, 1, 1)) * eps
        shift = within(way / way.norm(dim=-1, keepdim=True).clamp_min(SMALLEST) * length, eps)
        tried = torch.where(inside.unsqueeze(-1), shift, best.u)
        best.keep(tried, victim.error(tried))
    return best.u
