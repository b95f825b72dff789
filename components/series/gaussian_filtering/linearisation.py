"""First-order Taylor expansions of a state-space model with additive Gaussian noise, and the
prediction step of a filter based on them.

Source: Särkkä (2013), algorithm 5.4."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from components.contracts.capabilities import AdditiveGaussian, LinearGaussian
from components.contracts.sequences import Observation
from components.series.gaussian_filtering.gaussian_filtering import (
    Gaussians,
    predicted_covariance,
    propagate_mean,
)


def tangent(f: Callable[[Tensor], Tensor], x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """f(x) [R, size] and ∂f/∂x [R, size, dx] at x [R, dx], for a row-wise function of [R, N, dx].

    One backward pass: row i of the Jacobian is the gradient of the i-th output at the i-th of
    ``size`` equal points."""
    points = x.unsqueeze(1).expand(-1, size, -1)  # [R, size, dx]
    result = torch.func.vjp(f, points)
    values = result[0]
    pull = result[1]
    identity = torch.eye(size, device=x.device, dtype=x.dtype).expand_as(values)
    return values[:, 0], pull(identity)[0]


def transition_tangent(
    model: AdditiveGaussian | LinearGaussian, x: Tensor, t: int
) -> tuple[Tensor, Tensor]:
    """f_t(x) [R, dx] and its Jacobian [R, dx, dx], or [dx, dx] if f is linear."""
    if isinstance(model, LinearGaussian):
        return propagate_mean(model, x), model.A
    return tangent(lambda points: model.transition_mean(points, t), x, x.shape[1])


def observation_tangent(model: AdditiveGaussian, x: Tensor, t: int) -> tuple[Tensor, Tensor]:
    """h_t(x) [R, dy] and its Jacobian [R, dy, dx], or [dy, dx] if h is linear."""
    if isinstance(model, LinearGaussian):
        return x @ model.H.T, model.H
    return tangent(lambda points: model.observation_mean(points, t), x, model.Sigma.shape[-1])


def predict(
    state: Gaussians[AdditiveGaussian], batch: Observation
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """m⁻ = f(m) [R, dx], P⁻ = F P Fᵀ + Q, ŷ = h(m⁻) [R, dy] and H, the Jacobian of h at m⁻."""
    m, F = transition_tangent(state.model, state.m, batch.t)
    y, H = observation_tangent(state.model, m, batch.t)
    return m, predicted_covariance(F, state.P, state.model.Q), y, H
