"""Projection to a hyperplane within a box, in each norm, with one plane per row of x [B, D]."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.victim import NormName


def project_to_plane(
    x: Tensor, w: Tensor, b: Tensor, bounds: tuple[float, float] | None, norm: NormName
) -> Tensor:
    """argmin_z ‖z − x‖ over {z : ⟨w, z⟩ + b = 0} within the bounds; the point of the box nearest to
    the plane if they do not intersect.

    With m_i the range of x_i in the direction towards the plane, z_i − x_i is min(τ, m_i) in L∞,
    min(τ |w_i|, m_i) in L2, for the τ that reaches the plane, and in L1 m_i in decreasing order of
    |w_i|.

    Args:
        x: points [B, D]; w: normals [B, D]; b: offsets [B].

    Returns:
        z [B, D].

    Source: Croce and Hein (2019), section 3.1."""
    distance = (w * x).sum(1) + b  # [B]
    direction = -distance.sign().unsqueeze(1) * w.sign()
    slope = w.abs()
    distance = distance.abs().unsqueeze(1)
    if bounds is None:
        slack = torch.full_like(x, torch.inf)
    else:
        slack = torch.where(direction > 0, bounds[1] - x, x - bounds[0]).clamp_min(0.0)
    slack = torch.where(slope > 0, slack, 0.0)  # coordinates without effect stay
    if norm == "l1":
        return x + direction * _greedy_displacement(slope, slack, distance)
    speed = slope if norm == "l2" else (slope > 0).to(x)  # of a coordinate as τ grows
    ratio = torch.where(speed > 0, slack / speed.clamp_min(torch.finfo(speed.dtype).tiny), 0.0)
    tau = _solve_threshold(slope * speed, ratio, distance)
    return x + direction * torch.minimum(tau * speed, slack)


def _exclusive_cumsum(values: Tensor) -> Tensor:
    """Σ_{j<i} of values [B, D], some of them possibly infinite."""
    return torch.cat([torch.zeros_like(values[:, :1]), values[:, :-1]], 1).cumsum(1)


def _solve_threshold(gain: Tensor, end: Tensor, distance: Tensor) -> Tensor:
    """τ [B, 1] with Σ_i gain_i min(τ, end_i) = distance [B, 1], or the largest end if the sum stays
    below."""
    end, order = end.sort(1)
    gain = gain.gather(1, order)
    full = torch.where(gain > 0, gain * end, 0.0)  # gains of 0 are excluded, even times ∞
    earlier = _exclusive_cumsum(full)  # contribution of coordinates with an earlier end
    still = gain.flip(1).cumsum(1).flip(1)  # sum of gains of remaining coordinates
    tau = (distance - earlier) / still.clamp_min(torch.finfo(gain.dtype).tiny)
    reached = (tau <= end) & (still > 0)
    first = reached.to(torch.int64).argmax(1, keepdim=True)
    finite = torch.where(end.isfinite(), end, 0.0).amax(1, keepdim=True)
    return torch.where(reached.any(1, keepdim=True), tau.gather(1, first), finite)


def _greedy_displacement(slope: Tensor, slack: Tensor, distance: Tensor) -> Tensor:
    """Displacement of each coordinate [B, D], steepest first."""
    ordered, order = slope.sort(1, descending=True)
    most = slack.gather(1, order)
    need = torch.where(ordered > 0, ordered * most, 0.0)
    remaining = (distance - _exclusive_cumsum(need)).clamp_min(0.0)
    moves = torch.minimum(most, remaining / ordered.clamp_min(torch.finfo(slope.dtype).tiny))
    moves = torch.where(ordered > 0, moves, 0.0)
    return torch.zeros_like(slope).scatter(1, order, moves)
