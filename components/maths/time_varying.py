"""Kalman filter and smoother of one series with time-varying rows, for C systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI


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
    """Predictive moments of each time given earlier times."""

    log_density: Tensor  # log p(y_seen) [C]
    mean: Tensor  # E[y_t | y_<t] [C, n]
    variance: Tensor  # Var(y_t | y_<t) [C, n]
    a: Tensor  # E[α_t | y_<t] [C, n + 1, d], including the time after the last
    last: Tensor  # Cov(α_t | y_<t) at the time after the last [C, d, d]


# t, v [C] and S [C] -> the precision λ of the observation [C]
PrecisionFunction = Callable[[int, Tensor, Tensor], Tensor]


def filter_system(
    system: TimeVaryingSystem,
    y: Tensor,
    seen: list[bool],
    weigh: PrecisionFunction | None = None,
) -> FilteredSystem:
    """Kalman filter of y [n] or [C, n]; unobserved times are skipped.

        S = F P Fᵀ + r,  v = y − F a − o,  a ← G (a + P Fᵀ v/S),
        P ← G (P − P Fᵀ F P/S) Gᵀ + W,  log p = Σ log N(v | 0, S)

    Args:
        weigh: gives λ once the error of an observation is known; its variance is then r/λ, and its
        prediction is unchanged.

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
            errors.append(error)
        else:
            errors.append(torch.zeros_like(mean))
        a = (system.G @ a.unsqueeze(2)).squeeze(2)
        P = system.G @ P @ GT + W
        states.append(a)
    mean = torch.stack(means, 1)
    S = torch.stack(variances, 1)
    v = torch.stack(errors, 1)
    counts = torch.tensor(seen, device=v.device)
    log_density = -0.5 * ((v.square() / S + S.log() + LOG_2PI) * counts).sum(1)
    return FilteredSystem(
        log_density=log_density,
        mean=mean,
        variance=S,
        a=torch.stack(states, 1),
        last=P,
    )
