"""Gaussian q fitted to each row separately, for a bound at least as tight as with an amortised
q."""

from __future__ import annotations

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal
from components.metrics.evidence.proposal import Target

PAIRS = 5  # number of antithetic draws per step
RATE = 0.1  # initial step size of Adam, in units of z and of log s; decays to 0


def elbo(target: Target, m: Tensor, s: Tensor, noise: Tensor) -> Tensor:
    """E_q[log p(x_b, z)] + H(q) [B] for q = N(m_b, diag s_b²), the first term from noise [S, B,
    D]."""
    entropy = (s.log() + 0.5 * (1 + LOG_2PI)).sum(-1)
    return target(m + s * noise).mean(0) + entropy


def fit_q(
    target: Target, m: Tensor, s: Tensor, steps: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """m and s [B, D] of the q that maximises each row's bound, by Adam from a guide's m and s.

    Source: Cremer, Li and Duvenaud (2018), section 5.1 (a q optimised for each row)."""
    m = m.clone().requires_grad_()
    log_s = s.log().requires_grad_()
    optimizer = torch.optim.Adam([m, log_s])
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = RATE * (1 - step / steps) ** 2
        half = standard_normal((PAIRS, *m.shape), generator, m)
        with torch.enable_grad():
            bound = elbo(target, m, log_s.exp(), torch.cat([half, -half])).sum()
        m.grad, log_s.grad = torch.autograd.grad(-bound, [m, log_s])
        optimizer.step()
    return m.detach(), log_s.detach().exp()
