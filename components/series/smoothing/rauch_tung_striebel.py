"""Backward pass of Gaussian smoothers, from the moments of a Gaussian filter.

Source: Rauch, Tung and Striebel (1965); Särkkä (2013), theorem 8.2 and algorithm 9.1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic

import torch
from torch import Tensor

from components.contracts.capabilities import LinearGaussian
from components.contracts.posteriors import Signal
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.errors import NumericalError
from components.series.gaussian_filtering.gaussian_filtering import (
    Z90,
    GaussianFilter,
    Gaussians,
    GaussianStep,
    M,
)
from components.series.gaussian_filtering.linearisation import transition_tangent
from components.series.posteriors.smoothed import SmoothedSeries
from components.series.sequence import Sequence


@dataclass(kw_only=True)
class Forward(Gaussians[M]):
    """A running Gaussian filter, with its covariances at every time."""

    covariances: Trace = field(default_factory=Trace)  # rows [dx, dx] or [R, dx, dx]


class GaussianSmoother(GaussianFilter[M], Generic[M]):
    """Smoother with a backward pass over the Gaussians of the subclass's filter."""

    mixes = False  # no chains

    def init(self, model: M, problem: Sequence, rng: Rng) -> Forward[M]:
        return Forward(**vars(super().init(model, problem, rng)))

    def step(self, state: Gaussians[M], batch: Observation, rng: Rng) -> GaussianStep[M]:
        after, info = super().step(state, batch, rng)
        assert isinstance(after, Forward)
        after.covariances.append(after.P)
        return after, info

    def posterior(self, state: Gaussians[M]) -> SmoothedSeries:
        assert isinstance(state, Forward)
        return smooth_series(state)


def smooth_series(state: Forward[M]) -> SmoothedSeries:
    """p(x_t | y_1:T) for the T times so far, recomputed from the filter's moments, bit for bit
    reproducible."""
    filtered = state.filtered.current_posterior()
    model = state.model
    like = state.m
    if filtered.t == 0:
        return SmoothedSeries.empty_smoothed(like)
    m = filtered.mean.transpose(0, 1)
    P = state.covariances.rows.to(like.device)  # [T, R, dx], [T, (R,) dx, dx]
    ahead = [
        transition_tangent(model, m[k], k + 2) for k in range(len(m) - 1)
    ]  # from time k + 1 to k + 2
    means, covariances = backwards(m, P, ahead, model.Q)
    variance = torch.linalg.diagonal(covariances)  # [T, dx] or [T, R, dx]
    variance = variance.unsqueeze(1).expand_as(means) if variance.dim() == 2 else variance
    mean = means.transpose(0, 1).contiguous()
    variance = variance.transpose(0, 1).contiguous()
    z = Z90 * variance.sqrt()
    signal = _signal(model, mean, covariances) if isinstance(model, LinearGaussian) else None
    return SmoothedSeries(mean, variance, mean - z, mean + z, signal)


def _signal(model: LinearGaussian, mean: Tensor, covariances: Tensor) -> Signal:
    """H x_t, and the 90 % interval of H x_t + N(0, Σ); means [R, T, dx], covariances [T, (R,) dx,
    dx]."""
    # [T, (R,) dy]
    spread = torch.linalg.diagonal(model.H @ covariances @ model.H.T + model.Sigma).sqrt()
    z = Z90 * (spread if spread.dim() == 2 else spread.transpose(0, 1))
    expected = mean @ model.H.T
    return Signal(expected, expected - z, expected + z)


def backwards(
    m: Tensor, P: Tensor, ahead: list[tuple[Tensor, Tensor]], Q: Tensor
) -> tuple[Tensor, Tensor]:
    """Smoothed m [T, R, dx] and P [T, (R,) dx, dx] from the filtered ones, and f(m) and its
    Jacobian A at all times but the last.

    G = P Aᵀ (A P Aᵀ + Q)⁻¹, m^s = m + G(m^s' − f(m)), and P^s = P + G(P^s' − P⁻)Gᵀ in the form that
    stays positive definite, (I − GA) P (I − GA)ᵀ + G(P^s' + Q)Gᵀ.

    Raises:
        NumericalError: a predicted covariance has no Cholesky factor.
    """
    if not ahead:
        return m, P
    transition_means = torch.stack([f for f, _ in ahead])
    A = torch.stack([jacobian for _, jacobian in ahead])
    # a shared Jacobian for replicates with different covariances
    A = A.unsqueeze(1) if A.dim() < P.dim() else A
    filtered_P = P[:-1]
    AP = A @ filtered_P
    L, failed = torch.linalg.cholesky_ex(AP @ A.mT + Q)
    if failed.any():
        t = int(failed.reshape(len(failed), -1).any(1).nonzero()[0]) + 2
        raise NumericalError(
            f"Cholesky of the predicted covariance failed at t = {t}", "set dtype=float64"
        )
    G = torch.cholesky_solve(AP, L).mT  # [T − 1, (R,) dx, dx]
    contraction = torch.eye(m.shape[2]).to(m) - G @ A
    conditional_P = contraction @ filtered_P @ contraction.mT + G @ Q @ G.mT
    later_m = m[-1]
    later_P = P[-1]
    means = [later_m]
    covariances = [later_P]
    for k in range(len(G) - 1, -1, -1):
        step = later_m - transition_means[k]
        later_m = m[k] + (
            step @ G[k].mT if G[k].dim() == 2 else (G[k] @ step.unsqueeze(2)).squeeze(2)
        )
        later_P = conditional_P[k] + G[k] @ later_P @ G[k].mT
        means.append(later_m)
        covariances.append(later_P)
    return torch.stack(means[::-1]), torch.stack(covariances[::-1])
