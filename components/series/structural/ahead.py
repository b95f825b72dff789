"""Forecast of a series: the joint moments of its next observations."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.posteriors import ForecastMoments
from components.maths.time_varying import TimeVaryingSystem, filter_system


def forecast_moments(
    system: TimeVaryingSystem,
    y: Tensor,
    seen: Tensor,
    horizon: int,
    kappa: Tensor | None,
    centre: float,
) -> ForecastMoments:
    """Joint moments of the last H values of y [n], given the values before them.

    With ``kappa`` [C], y_t is also regressed on y_{t−1} − centre. The system includes the known
    part of this term, which among the forecast times exists only at T + 1.

        w_h = F_h α_h + o_h + ε_h ~ N(m, Q) jointly,   y_h = w_h + κ (y_{h−1} − c)
        ⇒   y = A (w − κ c 1_{h>1}),   A_hk = κ^{h−k} where k ≤ h
    """
    times = len(y) - horizon
    past = system._replace(
        F=system.F[:times], offset=system.offset[:, :times], noise=system.noise[:, :times]
    )
    past_filter = filter_system(past, y[:times], seen[:times].tolist())
    a = past_filter.a[:, -1]
    P = past_filter.last
    W = torch.diag_embed(system.W)
    GT = system.G.mT
    crosses: list[Tensor] = []  # covariances of the latest state with w_1 … w_h  # [C, d] each
    means = []
    rows = []
    for t in range(times, len(y)):
        F = system.F[t]
        if t > times:
            a = (system.G @ a.unsqueeze(2)).squeeze(2)
            P = system.G @ P @ GT + W
            crosses = [(system.G @ cross.unsqueeze(2)).squeeze(2) for cross in crosses]
        spread = P @ F
        rows.append([*(cross @ F for cross in crosses), spread @ F + system.noise[:, t]])
        crosses.append(spread)
        means.append(a @ F + system.offset[:, t])
    mean = torch.stack(means, 1)
    Q = mean.new_zeros(len(mean), horizon, horizon)
    for h, row in enumerate(rows):
        Q[:, h, : h + 1] = torch.stack(row, 1)
    Q = Q + Q.tril(-1).mT
    if kappa is None:
        return ForecastMoments(mean, Q)
    lag = torch.arange(horizon, device=mean.device)
    apart = (lag.unsqueeze(1) - lag).to(mean)
    A = torch.where(apart >= 0, kappa.view(-1, 1, 1) ** apart.clamp_min(0), 0.0)
    adjusted_mean = mean - kappa.unsqueeze(1) * centre * (lag > 0)
    return ForecastMoments((A @ adjusted_mean.unsqueeze(2)).squeeze(2), A @ Q @ A.mT)
