"""The particle filter with the true distribution of the corrupted observations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from components.contracts.capabilities import GaussianNoise, NoiseDensity, NoiseLaw, StateSpace
from components.contracts.requirements import Requirements
from components.contracts.roles import Component
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.cholesky import LOG_2PI, half_log_det
from components.registry import register
from components.series.filtering.generalised_particle_filter import FilterState, start
from components.series.filtering.particle_filter import AdaptiveFilter
from components.series.models.linear_gaussian_ssm import BorrowedDynamics
from components.series.sequence import Sequence

NoiseDensityFn = Callable[[Tensor], Tensor]  # log density of y − h(x) [R, N, dy] -> [R, N]


def gaussian_mixture(weights: Tensor, covariances: Tensor) -> NoiseDensityFn:
    """log Σ_c w_c N(· | 0, Σ_c) for weights [C] and covariances [C, dy, dy], or [C, R, dy, dy] per
    replicate."""
    L = torch.linalg.cholesky(covariances)
    whiten = torch.linalg.inv(L)
    log_scales = half_log_det(L) + 0.5 * covariances.shape[-1] * LOG_2PI
    log_heights = (weights.log() - log_scales.movedim(0, -1)).unsqueeze(-2)  # [1, C] or [R, 1, C]

    def log_density(noise: Tensor) -> Tensor:
        # [R, N, C]
        squares = torch.stack([(noise @ each.mT).square().sum(-1) for each in whiten], -1)
        return torch.logsumexp(log_heights - 0.5 * squares, -1)

    return log_density


class TrueNoiseModel(BorrowedDynamics):
    """``StateSpace``: a model with the corrupted noise distribution instead of Gaussian noise."""

    def __init__(self, model: StateSpace, log_density: NoiseDensityFn):
        self.dynamics = model
        self._log_density = log_density

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor:
        return self._log_density(y.unsqueeze(-2) - self.observation_mean(x, t))


@register("inference", "oracle")
class Oracle(AdaptiveFilter[StateSpace]):
    """Bootstrap particle filter with the true likelihood of the corrupted observations.

    The likelihood comes from the attacker.  x̄_t ~ f_t(· | x_{t−1}), w_t ∝ w_{t−1} p(y_t −
    h_t(x̄_t)), with p the noise distribution after the attack: a mixture of Gaussians, of a t, or
    over all scales around the model's own N(0, Σ); without an attack it is N(0, Σ). Then resampling
    as in the bootstrap filter.  Particles are [R, N, dx]; the normaliser is an unbiased estimate of
    the evidence.  A missing observation leaves the weights unchanged: under ``attacker=missing``,
    which drops observations regardless of their values, the observations that arrive have the clean
    distribution, and the filter is exact.  Raises ConfigMismatchError if the attacker has no such
    distribution or the model's noise is not N(0, Σ) in the first place, NumericalError if all
    weights of a replicate are zero.

    Source: Boustati (2021), section 6.5.1 (Oracle BPF).
    """

    requires = Requirements(capabilities={GaussianNoise})

    def init(self, model: StateSpace, problem: Sequence, rng: Rng) -> FilterState[StateSpace]:
        assert isinstance(model, GaussianNoise)
        truthful = TrueNoiseModel(model, self._law(problem.attacker, model.Sigma))
        state: FilterState[StateSpace] = start(truthful, problem, self.particles, rng)
        particle = state.particles[:, :1]
        offset = torch.linalg.cholesky(model.Sigma).sum(-1)
        clean = self._law(None, model.Sigma)
        for y in (model.observation_mean(particle, 1)[:, 0] + side * offset for side in (-1, 1)):
            log_density = model.log_observation(y, particle, 1)
            if not torch.allclose(
                log_density,
                clean(y.unsqueeze(1) - model.observation_mean(particle, 1)),
                rtol=1e-3,
                atol=1e-3,
            ):
                raise ConfigMismatchError(
                    f"inference={self.name}: the attackers' noise distributions require a model "
                    "with noise N(0, Σ); use another model, or inference=bootstrap_filter"
                )
        return state

    def _law(self, attacker: Component | None, Sigma: Tensor) -> NoiseDensityFn:
        if attacker is None:
            return gaussian_mixture(Sigma.new_ones(1), Sigma.unsqueeze(0))
        if isinstance(attacker, NoiseLaw):
            return gaussian_mixture(*attacker.mixture(Sigma))
        if isinstance(attacker, NoiseDensity):
            density = attacker
            covariance = (
                Sigma if Sigma.dim() == 2 else Sigma.unsqueeze(1)
            )  # [dy, dy] or [R, 1, dy, dy]

            def log_density(noise: Tensor) -> Tensor:
                return density.log_noise_density(noise, covariance)

            # fail now if the attacker, as configured, has no noise density
            log_density(torch.zeros_like(covariance[..., :1, :]))
            return log_density
        raise ConfigMismatchError(
            f"inference={self.name}: attacker={attacker.name} does not provide its noise "
            "distribution; use one that does (gaussian_contamination, student_t_outliers, "
            "multiplicative_exponential, missing), or another filter"
        )
