"""Nonlinear responses to advertising."""

from __future__ import annotations

import torch
from torch import Tensor


def saturate(u: Tensor, half: float, power: float) -> Tensor:
    """Hill's curve u^p/(h^p + u^p): it is ½ at u = h, S-shaped for p > 1, and at most 1. u has any
    shape.

    Source: Little (1979), eq. (1), the ADBUDG response between 0 and its largest value."""
    raised = u.clamp_min(0) ** power
    return torch.where(u.isnan(), u, raised / (half**power + raised))


def effectiveness(u: Tensor, wear_in: float, wear_out: float, recovery: float) -> Tensor:
    """e_t of each channel at spends u [n, c].

        e_t = (1 − ρ^{k_t}) w_t,   w_{t+1} = (1 − ω) w_t if u_t > 0 else w_t + r (1 − w_t),   w_1 = 1

    k_t counts consecutive weeks on air, ρ is ``wear_in`` (0: effective from the first week), ω
    ``wear_out``, r ``recovery``.

    Source: Naik, Mantrala and Sawyer (1998), eq. (4), in weeks and with copy wear-out; the wear-in
    is an addition."""
    if not (wear_in or wear_out):
        return torch.ones_like(u)
    worn = torch.ones_like(u[0])
    weeks = torch.zeros_like(worn)
    out = []
    for spent in u:
        on = spent > 0
        weeks = torch.where(on, weeks + 1, 0.0)
        out.append((1 - wear_in**weeks) * worn)
        worn = torch.where(on, (1 - wear_out) * worn, worn + recovery * (1 - worn))
    return torch.stack(out)
