"""Kalman filter and smoother of one series with time-varying rows, for C systems."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


class TimeVaryingSystem(NamedTuple):
    """y_t = F_t α_t + o_t + N(0, r_t),  α_{t+1} = G α_t + N(0, diag W),  α_1 ~ N(m, diag s²), t = 1 … n."""

    F: Tensor  # [n, d]
    G: Tensor  # [C, d, d]
    W: Tensor  # [C, d]
    mean: Tensor  # m [d]
    sd: Tensor  # s [d]
    offset: Tensor  # o [C, n]
    noise: Tensor  # r [C, n]


@dataclass(frozen=True)
class FilteredSystem:
    """Predictive moments of each time given earlier times, and the inputs of a smoother."""

    log_density: Tensor  # log p(y_seen) [C]
    mean: Tensor  # E[y_t | y_<t] [C, n]
    variance: Tensor  # Var(y_t | y_<t) [C, n]
    a: Tensor  # E[α_t | y_<t] [C, n + 1, d], of the time after the last too
    P: Tensor | None  # Cov(α_t | y_<t) [C, n + 1, d, d]; None: only the last was kept
    last: Tensor  # of the time after the last [C, d, d]
    gain: Tensor  # K_t = G P_t F_tᵀ/S_t, 0 where y is not seen [C, n, d]
    error: Tensor  # v_t = y_t less its mean, 0 where it is not seen [C, n]


# of t, v [C] and S [C] the precision λ of that observation [C]
PrecisionFunction = Callable[[int, Tensor, Tensor], Tensor]


def filter_system(
    system: TimeVaryingSystem,
    y: Tensor,
    seen: list[bool],
    keep: bool = False,
    weigh: PrecisionFunction | None = None,
) -> FilteredSystem:
    """Kalman filter of y [n] or [C, n]; unobserved times are skipped.

        S = F P Fᵀ + r,  v = y − F a − o,  a ← G (a + P Fᵀ v/S),
        P ← G (P − P Fᵀ F P/S) Gᵀ + W,  log p = Σ log N(v | 0, S)

    Args:
        keep: return every covariance.
        weigh: once the error of an observation is known, its variance is r/λ; the
            prediction made before is unchanged.

    Source: Durbin and Koopman (2012), section 4.3, eq. (4.24).
    """
    sets = len(system.G)
    a = system.mean.expand(sets, -1)
    P = torch.diag_embed(system.sd.square()).expand(sets, -1, -1)
    y = y.expand(sets, -1)
    W = torch.diag_embed(system.W)
    GT = system.G.mT
    means = []
    variances = []
    states = [a]
    covariances = [P]
    gains = []
    errors = []
    for t, is_observed in enumerate(seen):
        F = system.F[t]
        PF = P @ F  # [C, d]
        mean = a @ F + system.offset[:, t]
        S = PF @ F + system.noise[:, t]
        means.append(mean)
        variances.append(S)
        if is_observed:
            error = y[:, t] - mean
            worth = S if weigh is None else S + system.noise[:, t] * (1 / weigh(t, error, S) - 1)
            root = worth.rsqrt().unsqueeze(1)
            unit = PF * root
            a = a + unit * root * error.unsqueeze(1)
            P = P - unit.unsqueeze(2) * unit.unsqueeze(1)
            gains.append((system.G @ (unit * root).unsqueeze(2)).squeeze(2))
            errors.append(error)
        else:
            gains.append(torch.zeros_like(PF))
            errors.append(torch.zeros_like(mean))
        a = (system.G @ a.unsqueeze(2)).squeeze(2)
        P = system.G @ P @ GT + W
        states.append(a)
        if keep:
            covariances.append(P)
    mean = torch.stack(means, 1)
    S = torch.stack(variances, 1)
    v = torch.stack(errors, 1)
    counts = torch.tensor(seen, device=v.device)
    log_density = -0.5 * ((v.square() / S + S.log() + math.log(2 * math.pi)) * counts).sum(1)
    stored_P = torch.stack(covariances, 1) if keep else None
    return FilteredSystem(
        log_density=log_density,
        mean=mean,
        variance=S,
        a=torch.stack(states, 1),
        P=stored_P,
        last=P,
        gain=torch.stack(gains, 1),
        error=v,
    )


def _adjoints(system: TimeVaryingSystem, found: FilteredSystem, seen: list[bool]) -> Tensor:
    """r_0 … r_n [C, n + 1, d], r_n = 0:  r_{t−1} = F_tᵀ v_t/S_t + (G − K_t F_t)ᵀ r_t.

    Source: Durbin and Koopman (2012), eq. (4.44)."""
    r = torch.zeros_like(system.W)
    out = [r]
    for t in range(len(seen) - 1, -1, -1):
        back = (r.unsqueeze(1) @ system.G).squeeze(1)
        if seen[t]:
            along = found.error[:, t] / found.variance[:, t] - (found.gain[:, t] * r).sum(1)
            back = back + along.unsqueeze(1) * system.F[t]
        r = back
        out.append(r)
    return torch.stack(out[::-1], 1)


def smooth_system(system: TimeVaryingSystem, y: Tensor, seen: list[bool]) -> tuple[Tensor, Tensor]:
    """E[α_t | y] [C, n, d] and Cov(α_t | y) [C, n, d, d].

        α̂_t = a_t + P_t r_{t−1},   V_t = P_t − P_t N_{t−1} P_t,   N_{t−1} = F_tᵀF_t/S_t + L_tᵀ N_t L_t,   L_t = G − K_t F_t

    Source: Durbin and Koopman (2012), eq. (4.44)."""
    forward_pass = filter_system(system, y, seen, keep=True)
    assert forward_pass.P is not None
    r = _adjoints(system, forward_pass, seen)
    N = torch.zeros_like(forward_pass.last)
    covariances = []
    for t in range(len(seen) - 1, -1, -1):
        L = system.G - forward_pass.gain[:, t].unsqueeze(2) * system.F[t]
        N = L.mT @ N @ L
        if seen[t]:
            N = N + torch.outer(system.F[t], system.F[t]) / forward_pass.variance[:, t].view(
                -1, 1, 1
            )
        P = forward_pass.P[:, t]
        covariances.append(P - P @ N @ P)
    return forward_pass.a[:, :-1] + (forward_pass.P[:, :-1] @ r[:, :-1].unsqueeze(3)).squeeze(
        3
    ), torch.stack(covariances[::-1], 1)
