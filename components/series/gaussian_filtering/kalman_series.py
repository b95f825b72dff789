"""Kalman filter over whole series, with the results of the sequential steps.

Covariances and gains do not depend on the observations, so they are computed first: by
doubling if nothing is missing, otherwise sequentially, and each only until it
converges.  The remaining part of a step is m_t = (I − K_t H) A m_{t−1} + K_t y_t, one
product for all replicates.  Everything else is done for all times together.  The filter
is differentiable with respect to the observations.

Source: Särkkä (2013), theorem 4.2; Särkkä and García-Fernández (2021), section 3, for
the doubling.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import LinearGaussian
from components.maths.cholesky import LOG_2PI
from components.series.gaussian_filtering.gaussian_filtering import (
    Deviations,
    Gain,
    gain,
    log_determinant,
    predicted_covariance,
    rounding,
    unseen,
)
from components.series.gaussian_filtering.kalman import kalman_gain


@dataclass(frozen=True)
class FilteredSeries:
    """Moments of p(x_t | y_1:t) for t = 1 … T, time first."""

    mean: Tensor  # [T, R, dx]
    # [T, dx, dx], shared by all replicates; [T, R, dx, dx] where they miss different observations
    P: Tensor
    predicted: Tensor  # E[y_t | y_1:t−1] [T, R, dy]
    log_evidence: Tensor  # [R]


@dataclass(frozen=True)
class _Gains:
    """Distinct gains and covariances, and the index of the one that applies at each time."""

    K: Tensor  # [U, dx, dy] or [U, R, dx, dy]
    whiten: Tensor  # [U, (R,) dy, dy]
    P: Tensor  # [T, (R,) dx, dx]
    which: Tensor  # [T] of U


def filter_series(
    model: LinearGaussian, y: Tensor, missing: Tensor | None = None
) -> FilteredSeries:
    """Filters observations y [R, T, dy]; what is missing [R, T] may hold NaN.

    Raises:
        NumericalError: an innovation covariance has no Cholesky factor.
    """
    r, times, dy = y.shape
    is_missing = None if missing is None or not missing.any() else missing
    differ = max(matrix.dim() for matrix in (model.P0, model.Q, model.Sigma)) == 3
    apart = differ or (is_missing is not None and bool((is_missing != is_missing[:1]).any()))
    P0 = model.P0.expand(r, -1, -1) if apart else model.P0
    gains = (
        _gains_by_doubling(model, P0, times)
        if is_missing is None and not apart
        else _gains_step_by_step(model, P0, is_missing, times)
    )
    onward = (torch.eye(len(model.A)).to(y) - gains.K @ model.H) @ model.A  # (I − K H) A
    log_det = log_determinant(gains.whiten)[gains.which].view(times, -1)
    K = gains.K[gains.which]
    onward = onward[gains.which]
    whiten = gains.whiten[gains.which]
    # Replicates last: the products of small matrices with all of them are then over contiguous
    # numbers.
    observations = y.permute(1, 2, 0).contiguous()  # [T, dy, R]
    if is_missing is not None:
        is_observed = ~is_missing.T  # [T, R]
        observations = observations.masked_fill(~is_observed.unsqueeze(1), 0)
        where = is_observed.view(times, r, 1, 1) if apart else is_observed[:, :1].unsqueeze(2)
        K = torch.where(where, K, 0)
        onward = torch.where(where, onward, model.A)
    start = model.m0.expand(r, -1).mT
    means = _means(start, onward, _times(K, observations))  # [T, dx, R]
    predicted = (model.H @ model.A) @ torch.cat([start.unsqueeze(0), means[:-1]])  # [T, dy, R]
    squares = _times(whiten, observations - predicted).square().sum(1)  # [T, R]
    terms = squares + log_det
    log_evidence = -0.5 * (terms if is_missing is None else terms.masked_fill(is_missing.T, 0)).sum(
        0
    )
    counted = times if is_missing is None else is_observed.sum(0).to(y)
    log_evidence = log_evidence - 0.5 * dy * LOG_2PI * counted
    return FilteredSeries(means.mT, gains.P, predicted.mT, log_evidence)


def _gains_by_doubling(model: LinearGaussian, P0: Tensor, times: int) -> _Gains:
    """All covariances in log T rounds; a round computes from P_0 … P_{k−1} the next k.

    k steps take P to C + F(I + P J)⁻¹P Fᵀ; 2k steps are k steps after k steps.  Rounds end
    when P has converged.
    """
    # Hᵀ(H Q Hᵀ + Σ)⁻¹
    gained = torch.linalg.solve(model.H @ model.Q @ model.H.T + model.Sigma, model.H).mT
    one = torch.eye(len(P0)).to(P0)
    F = (one - model.Q @ gained @ model.H) @ model.A
    C = model.Q - model.Q @ gained @ model.H @ model.Q
    J = model.A.T @ gained @ model.H @ model.A
    P = P0.unsqueeze(0)
    while len(P) < times and (len(P) < 2 or not bool(rounding(P[-1], P[-2]).all())):
        P = torch.cat([P, C + F @ torch.linalg.solve(one + P @ J, P) @ F.T])
        across = torch.linalg.solve(one + C @ J, torch.cat([F, C], 1))  # (I + C J)⁻¹(F, C)
        F, C, J = (
            F @ across[:, : len(F)],
            C + F @ across[:, len(F) :] @ F.T,
            J + F.T @ J @ across[:, : len(F)],
        )
        P = 0.5 * (P + P.mT)
    P = P[:times]
    every = gain(
        P,
        prior := predicted_covariance(model.A, P, model.Q),
        Deviations(None, model.H, prior),
        model.Sigma,
        1,
    )
    still = rounding(every.P, P).flatten(1).all(1)
    last = int(still.int().argmax()) if bool(still.any()) else len(P) - 1
    indices = torch.arange(times, device=P.device).clamp_max(last)
    return _Gains(every.K[: last + 1], every.whiten[: last + 1], every.P[indices], indices)


def _gains_step_by_step(
    model: LinearGaussian, P: Tensor, lost: Tensor | None, times: int
) -> _Gains:
    """The gain of every time, one after the other, as the filter finds them."""
    distinct: list[Gain] = []
    indices: list[int] = []
    covariances: list[Tensor] = []
    some = [False] * times if lost is None else lost.any(0).tolist()
    last: Gain | None = None
    for t in range(times):
        filter_gain = kalman_gain(model, P, last, t + 1)
        if filter_gain is not last:
            distinct.append(filter_gain)
            last = filter_gain
        indices.append(len(distinct) - 1)
        P = filter_gain.P if lost is None or not some[t] else unseen(filter_gain, lost[:, t])
        covariances.append(P)
    K, whiten = (torch.stack(v) for v in zip(*((g.K, g.whiten) for g in distinct), strict=True))
    return _Gains(K, whiten, torch.stack(covariances), torch.tensor(indices, device=P.device))


def _times(matrices: Tensor, v: Tensor) -> Tensor:
    """Each matrix times its vectors: [T, b, a] or [T, R, b, a] and v [T, a, R] -> [T, b, R]."""
    if matrices.dim() == 3:
        return torch.bmm(matrices, v)
    return (matrices @ v.mT.unsqueeze(3)).squeeze(3).mT


def _means(m: Tensor, onward: Tensor, pushed: Tensor) -> Tensor:
    """m_t = F_t m_{t−1} + u_t; m [dx, R], F [T, (R,) dx, dx], u [T, dx, R], which is written over,
    -> [T, dx, R]."""
    if onward.dim() == 3 and not (pushed.requires_grad or onward.requires_grad or m.requires_grad):
        for F, u in zip(onward.unbind(), pushed.unbind(), strict=True):
            m = u.addmm_(F, m)
        return pushed
    means = []
    for F, u in zip(onward.unbind(), pushed.unbind(), strict=True):
        m = torch.addmm(u, F, m) if F.dim() == 2 else u + (F @ m.mT.unsqueeze(2)).squeeze(2).mT
        means.append(m)
    return torch.stack(means)
