"""The bootstrap particle filter with Student-t observation noise."""

from __future__ import annotations

import math
from functools import partial

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.capabilities import GaussianNoise
from components.contracts.requirements import Requirements
from components.contracts.sequences import Observation
from components.registry import register
from components.series.filtering.generalised_particle_filter import Potential
from components.series.filtering.losses import whitened_residuals
from components.series.filtering.particle_filter import AdaptiveFilter


def log_student_t(
    model: GaussianNoise, batch: Observation, x: Tensor, df: float, joint: bool, scale: float | None
) -> Tensor:
    """Log density of y − h(x) under t noise of scale matrix Σ = L Lᵀ, or ``scale``² I.

    x [R, N, dx] -> [R, N].  Either the joint t_ν(0, Σ), or a univariate t_ν for each
    coordinate of L⁻¹(y − h(x)); for a diagonal Σ these are the coordinates of y.
    """
    if scale is None:
        r, log_scale = whitened_residuals(model, batch, x)  # [R, N, dy], [1] or [R, 1]
    else:
        residuals = batch.y.unsqueeze(-2) - model.observation_mean(x, batch.t)
        r = residuals / scale
        log_scale = residuals.new_tensor(residuals.shape[-1] * math.log(scale))
    dy = r.shape[-1]
    if joint:
        return (
            _log_constant(df, dy)
            - log_scale
            - 0.5 * (df + dy) * torch.log1p(r.square().sum(-1) / df)
        )
    return (
        dy * _log_constant(df, 1)
        - log_scale
        - 0.5 * (df + 1) * torch.log1p(r.square() / df).sum(-1)
    )


def _log_constant(df: float, d: int) -> float:
    """log Γ((ν + d)/2) − log Γ(ν/2) − ½ d log(ν π)."""
    return math.lgamma((df + d) / 2) - math.lgamma(df / 2) - 0.5 * d * math.log(df * math.pi)


@register("inference", "student_t_filter")
class StudentTFilter(AdaptiveFilter[GaussianNoise]):
    """Bootstrap particle filter with Student-t noise in its weights instead of Gaussian noise.

    x̄_t ~ f_t(· | x_{t−1}), w_t ∝ w_{t−1} t_ν(y_t − h_t(x̄_t); 0, Σ), with a univariate t
    for each coordinate of the whitened residual (a product of t's for a diagonal Σ), or the
    multivariate t; then resampling as in the bootstrap filter, which is the case ν → ∞.
    The model's own noise is Gaussian.  Particles are [R, N, dx].  The normaliser is the
    evidence of the model with t noise.  A missing observation leaves the weights unchanged.
    Raises NumericalError if all weights of a replicate are zero.

    Source: Xu et al. (2013); Boustati (2021), section 6.5.2.
    """

    requires = Requirements(capabilities={GaussianNoise})
    df: PositiveFloat
    joint: bool
    scale: PositiveFloat | None

    def potential(
        self, model: GaussianNoise, t: int, generator: torch.Generator
    ) -> Potential[GaussianNoise]:
        return partial(log_student_t, df=self.df, joint=self.joint, scale=self.scale)
