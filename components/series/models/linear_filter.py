"""Twice-differentiable Kalman filter of one series, batched over K sets of variances."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI


@dataclass(frozen=True)
class LinearSystem:
    """z_0 ~ N(m_0, s_0² I), z_t = G z_{t−1} + c + N(0, diag q), x_t = F z_t + a + N(0, r), scalar
    x_t; only q [K, d] and r [K] differ between the K sets."""

    G: Tensor  # [d, d]
    c: Tensor  # [d]
    F: Tensor  # [d]
    a: Tensor  # []
    m0: Tensor  # [d]
    s0: float  # 0: z_0 is m_0

    def like(self, other: Tensor) -> LinearSystem:
        """The system with the dtype and device of another tensor."""
        G, c, F, a, m0 = (matrix.to(other) for matrix in (self.G, self.c, self.F, self.a, self.m0))
        return LinearSystem(G, c, F, a, m0, self.s0)


@dataclass(frozen=True)
class StateMoments:
    """N(m, P) of the state of each set."""

    m: Tensor  # [K, d]
    P: Tensor  # [K, d, d]

    def ahead(self, system: LinearSystem, q: Tensor) -> StateMoments:
        """Prediction for the next time: m⁻ = G m + c, P⁻ = G P Gᵀ + Q."""
        m = torch.addmm(system.c, self.m, system.G.T)
        return StateMoments(m, system.G @ self.P @ system.G.T + torch.diag_embed(q))

    def predict_observation(self, system: LinearSystem, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean F m + a and variance S = F P Fᵀ + r of x [K], and P Fᵀ [K, d]."""
        spread = self.P @ system.F
        return self.m @ system.F + system.a, spread @ system.F + r, spread


def filter_series(
    system: LinearSystem, q: Tensor, r: Tensor, x: Tensor, seen: list[bool]
) -> tuple[Tensor, StateMoments]:
    """log p(x_1:T) [K] and the moments of z_T given x_1:T, for x [T]; times that are not ``seen``
    are skipped.

        S = F P⁻ Fᵀ + r,  m = m⁻ + P⁻ Fᵀ (x − F m⁻ − a)/S,  P = P⁻ − P⁻ Fᵀ F P⁻/S,  log p = Σ_t log N(x_t | F m⁻ + a, S)

    Source: Särkkä (2013), theorem 4.2."""
    sets = len(r)
    d = len(system.m0)
    P = system.s0**2 * torch.eye(d).to(system.m0)
    now = StateMoments(system.m0.expand(sets, d), P.expand(sets, d, d))  # of z_0
    errors = []
    variances = []
    for value, is_observed in zip(x.unbind(), seen, strict=True):
        now = now.ahead(system, q)
        if not is_observed:
            continue
        mean, S, spread = now.predict_observation(system, r)
        error = value - mean
        root = S.rsqrt().unsqueeze(1)
        unit = root * spread  # P⁻ Fᵀ / √S: both updates in symmetric form  # [K, d]
        m = torch.addcmul(now.m, unit, error.unsqueeze(1) * root)
        now = StateMoments(m, torch.baddbmm(now.P, unit.unsqueeze(2), unit.unsqueeze(1), alpha=-1))
        errors.append(error)
        variances.append(S)
    if not errors:
        return r.new_zeros(len(r)), now
    error = torch.stack(errors, 1)
    S = torch.stack(variances, 1)  # [K, times seen]
    return -0.5 * (error.square() / S + S.log() + LOG_2PI).sum(1), now


def forecast(
    system: LinearSystem, q: Tensor, r: Tensor, now: StateMoments, horizon: int
) -> tuple[Tensor, Tensor]:
    """Means and variances of x_{T+1} … x_{T+H} [K, H] each, from the moments of z_T."""
    means = []
    variances = []
    for _ in range(horizon):
        now = now.ahead(system, q)
        mean, S, _ = now.predict_observation(system, r)
        means.append(mean)
        variances.append(S)
    return torch.stack(means, 1), torch.stack(variances, 1)
