"""A Dirichlet process mixture of Gaussians."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.requirements import REAL_ROWS
from components.contracts.roles import AtLeastTwo, Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.exponential.dirichlet import draw_log_dirichlet
from components.models.mixtures.gaussian_mixture import MixtureParameters, cluster_prior
from components.models.mixtures.stick_ascent import StickAscent, log_shares
from components.problems.unlabelled import Unlabelled
from components.registry import register


@dataclass(frozen=True)
class DpMixtureModule(MixtureParameters):
    """Dirichlet-process mixture with partitions that do not depend on the truncation.

    θ describes a mixture of its T clusters, with a stick-breaking prior of π instead of Dir(1, …,
    1).
    """

    concentration: float  # α of the process

    def log_prior(self, theta: Tensor) -> Tensor:
        """With v_t = π_t/s_t, s_t = Σ_{j≥t} π_j: Π_{t<T} Beta(v_t | 1, α)/s_t is the density of
        π."""
        log_pi = self.split(theta)[0]
        log_s = log_pi.flip(1).logcumsumexp(1).flip(1)  # [K, T]
        T = log_pi.shape[1]
        sticks = ((self.concentration - 1) * log_s.diff(dim=1) - log_s[:, :-1]).sum(1) + (
            T - 1
        ) * math.log(self.concentration)
        # the density of Dir(1, …, 1) is Γ(T)
        return super().log_prior(theta) - math.lgamma(T) + sticks

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        sticks = self.prior.m.new_tensor([1.0, self.concentration])
        logs = draw_log_dirichlet(sticks.expand(n, self.n_clusters - 1, 2), generator)
        mu, L = self.expand_prior(n).draw(generator)
        return self.join(log_shares(logs), mu, L)

    def mean_field(self) -> StickAscent:
        return StickAscent(self.prior, self.n_clusters, self.concentration, self.join)


@register("model", "dp_mixture")
class DpMixture(Model[Unlabelled, DpMixtureModule]):
    """A mixture of Gaussians with a data-driven number of clusters: means and precisions from a
    Dirichlet process.

    x_b ~ N(μ_b, Λ_b⁻¹), (μ_b, Λ_b) ~ G, G ~ DP(α, NW), NW: μ | Λ ~ N(m, (βΛ)⁻¹), Λ ~ Wishart(ν, V⁻¹);  so p(partition) ∝
    α^K Π_k Γ(n_k).  m is the mean of the training rows, V = ν ``width``² times their variances along each axis.  As a log joint
    and for mean field G = Σ_t π_t δ, π_t = v_t Π_{j<t} (1 − v_j), v_t ~ Beta(1, α), v_T = 1, T = ``truncation``.

    Raises ConfigMismatchError if ν ≤ D − 1, or for a constant value.

    Source: Bardenet (2021), chapter 7; Blei & Jordan (2006), sections 2 and 3; Neal (2000), eq.
    (2.1)."""

    requires = REAL_ROWS
    concentration: PositiveFloat
    truncation: AtLeastTwo
    mean_rows: PositiveFloat
    freedom: PositiveFloat | None
    width: PositiveFloat

    def build(self, problem: Unlabelled, rng: Rng) -> DpMixtureModule:
        x = problem.train.x.flatten(1)
        variance = x.var(0, correction=0)
        if not (variance > 0).all():
            raise ConfigMismatchError(
                f"dataset={problem.name}: a value is constant in the training rows; remove it"
            )
        prior = cluster_prior(x.mean(0), variance, self.width**2, self.mean_rows, self.freedom)
        return DpMixtureModule(1.0, prior, self.truncation, self.concentration)
