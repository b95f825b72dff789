"""The Kalman filter over whole series: the numbers of one step after the other, without the steps.

Covariances and gains do not depend on the observations, so that they are found first and each only until it settles; what is
left of a step is m_t = (I − K_t H) A m_{t−1} + K_t y_t, one product for all replicates.  Everything else is done for all
times at once.  It can be differentiated with respect to the observations.

Source: Särkkä (2013), theorem 4.2."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import LinearGaussian
from components.inference.filtering.gaussian_filtering import Gain, log_determinant, unseen
from components.inference.filtering.kalman import kalman_gain


@dataclass(frozen=True)
class FilteredSeries:
    """Moments of p(x_t | y_1:t) for t = 1 … T, time first."""

    mean: Tensor  # [T, R, dx]
    P: Tensor  # [T, dx, dx], that of all replicates; [T, R, dx, dx] where they miss different observations
    predicted: Tensor  # E[y_t | y_1:t−1] [T, R, dy]
    log_evidence: Tensor  # [R]


def filter_series(model: LinearGaussian, y: Tensor, missing: Tensor | None = None) -> FilteredSeries:
    """Filters observations y [R, T, dy]; what is missing [R, T] may hold NaN.

    Raises:
        NumericalTrouble: an innovation covariance has no Cholesky factor.
    """
    r, times, dy = y.shape
    lost = None if missing is None or not missing.any() else missing
    differ = max(matrix.dim() for matrix in (model.P0, model.Q, model.Sigma)) == 3
    apart = differ or (lost is not None and bool((lost != lost[:1]).any()))
    distinct, which, P = _gains(model, model.P0.expand(r, -1, -1) if apart else model.P0, lost, times)
    K, whiten = (torch.stack(v) for v in zip(*((g.K, g.whiten) for g in distinct), strict=True))
    onward = ((torch.eye(len(model.A)).to(K) - K @ model.H) @ model.A).mT  # its transpose [T, (R,) dx, dx]
    log_det = log_determinant(whiten)
    K, onward, whiten, log_det = K[which], onward[which], whiten[which], log_det[which]
    y = y.transpose(0, 1).contiguous()  # [T, R, dy]
    if lost is not None:
        there = ~lost.T  # [T, R]
        y = y.masked_fill(~there.unsqueeze(2), 0)
        seen = there.view(times, r, 1, 1) if apart else there[:, :1].unsqueeze(2)
        K, onward = torch.where(seen, K, 0), torch.where(seen, onward, model.A.T)
    mean = _means(model.m0.expand(r, -1), onward, _times(y, K))
    before = torch.cat([model.m0.expand(1, r, -1), mean[:-1]])
    predicted = before @ (model.H @ model.A).T
    squares = _times(y - predicted, whiten).square().sum(2)  # [T, R]
    terms = -0.5 * (squares + log_det.view(times, -1) + dy * math.log(2 * math.pi))
    log_evidence = terms.sum(0) if lost is None else terms.masked_fill(lost.T, 0).sum(0)
    return FilteredSeries(mean, P, predicted, log_evidence)


def _gains(model: LinearGaussian, P: Tensor, lost: Tensor | None, times: int) -> tuple[list[Gain], Tensor, Tensor]:
    """Gains that differ, which of them is that of each time [T], and P after each time [T, dx, dx] or [T, R, dx, dx]."""
    distinct: list[Gain] = []
    which: list[int] = []
    covariances: list[Tensor] = []
    some = [False] * times if lost is None else lost.any(0).tolist()
    last: Gain | None = None
    for t in range(times):
        found = kalman_gain(model, P, last, t + 1)
        if found is not last:
            distinct.append(found)
            last = found
        which.append(len(distinct) - 1)
        P = found.P if lost is None or not some[t] else unseen(found, lost[:, t])
        covariances.append(P)
    return distinct, torch.tensor(which, device=P.device), torch.stack(covariances)


def _times(v: Tensor, matrices: Tensor) -> Tensor:
    """Each vector times its matrix: v [T, R, a], matrices [T, b, a] or [T, R, b, a] -> [T, R, b]."""
    return torch.bmm(v, matrices.mT) if matrices.dim() == 3 else (matrices @ v.unsqueeze(3)).squeeze(3)


def _means(m: Tensor, onward: Tensor, pushed: Tensor) -> Tensor:
    """m_t = m_{t−1} F_tᵀ + u_t; m [R, dx], Fᵀ [T, (R,) dx, dx], u [T, R, dx] -> [T, R, dx]."""
    means = []
    if onward.dim() == 3:
        for F, u in zip(onward.unbind(), pushed.unbind(), strict=True):
            m = torch.addmm(u, m, F)
            means.append(m)
        return torch.stack(means)
    for F, u in zip(onward.unbind(), pushed.unsqueeze(2).unbind(), strict=True):
        m = torch.baddbmm(u, m.unsqueeze(1), F).squeeze(1)
        means.append(m)
    return torch.stack(means)
