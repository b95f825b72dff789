"""Local-level model: a noisy random walk with two unknown variances."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.roles import Model
from components.contracts.sequences import Series
from components.contracts.streams import Rng
from components.maths.exponential.dirichlet import draw_gamma
from components.maths.exponential.standard_draws import standard_normal
from components.registry import register
from components.series.sequence import UNIVARIATE, Sequence


class LocalLevelConditionals:
    """``SeriesConditionals`` of θ = (σ²_ε, σ²_η) and the level μ_0 … μ_T, for C chains of each of R
    replicates."""

    parameter_names = ("observation_variance", "level_variance")
    state_dim = 1

    def __init__(self, prior: LocalLevel):
        self.prior = prior
        self.shape = (prior.observation_shape, prior.level_shape)
        self.scale = (prior.observation_scale, prior.level_scale)

    def _inverse_gamma(self, shape: Tensor, scale: Tensor, generator: torch.Generator) -> Tensor:
        return scale / draw_gamma(shape, generator)

    def start(self, series: Series, chains: int, generator: torch.Generator) -> Tensor:
        """Draws from the prior [R, C, 2]."""
        like = series.y.new_ones(len(series.y), chains, 1)
        return self._inverse_gamma(
            like * like.new_tensor(self.shape), like * like.new_tensor(self.scale), generator
        )

    def draw_states(self, series: Series, theta: Tensor, generator: torch.Generator) -> Tensor:
        """μ_0 … μ_T ~ p(· | θ, y) by forward filtering and backward sampling; θ [R, C, 2] -> [R,
        C, T + 1, 1].

        Source: Carter and Kohn (1994); Frühwirth-Schnatter (1994)."""
        y, (v, q) = series.y[..., 0], theta.unbind(-1)  # [R, T]; [R, C] each
        times = y.shape[1]
        m = torch.full_like(v, self.prior.initial_mean)
        P = torch.full_like(v, self.prior.initial_sd**2)
        means = [m]
        variances = [P]
        gone = series.missing
        for t in range(times):  # forward: μ_t | y_1:t ~ N(m, P)
            prior = P + q
            gain = prior / (prior + v)
            observation = y[:, t, None]
            if gone is not None:
                gain = torch.where(gone[:, t, None], 0.0, gain)
                observation = torch.where(gone[:, t, None], m, observation)
            m = torch.lerp(m, observation.expand_as(m), gain)
            P = (1 - gain) * prior
            means.append(m)
            variances.append(P)
        z = standard_normal((times + 1, *v.shape), generator, v)
        level = means[-1] + variances[-1].sqrt() * z[-1]
        levels = [level]
        for t in range(times - 1, -1, -1):  # backward: μ_t | μ_t+1, y_1:t
            back = variances[t] / (variances[t] + q)
            level = torch.lerp(means[t], level, back) + (back * q).sqrt() * z[t]
            levels.append(level)
        return torch.stack(levels[::-1], -1).unsqueeze(-1)  # [R, C, T + 1, 1]

    def draw_parameters(
        self, series: Series, states: Tensor, theta: Tensor, generator: torch.Generator
    ) -> Tensor:
        """σ² ~ InvGamma(a + n/2, b + Σ residuals²/2), each from its own residuals; [R, C, 2]."""
        level = states[..., 0]  # [R, C, T + 1]
        residuals = (series.y[..., 0].unsqueeze(1) - level[..., 1:]).square()  # [R, C, T]
        if series.missing is None:
            n_observed = torch.full_like(residuals[..., 0], residuals.shape[-1])
        else:
            residuals = torch.where(series.missing.unsqueeze(1), 0.0, residuals)
            n_observed = (
                (~series.missing).sum(-1, keepdim=True).to(residuals).expand_as(residuals[..., 0])
            )
        # [R, C, 2]
        squares = torch.stack([residuals.sum(-1), level.diff(dim=-1).square().sum(-1)], -1)
        counts = torch.stack([n_observed, torch.full_like(n_observed, level.shape[-1] - 1)], -1)
        shape = counts / 2 + counts.new_tensor(self.shape)
        return self._inverse_gamma(shape, squares / 2 + squares.new_tensor(self.scale), generator)


@register("model", "local_level")
class LocalLevel(Model[Sequence, LocalLevelConditionals]):
    """Local level: a random walk observed with noise, with inverse-gamma priors on both variances.

    μ_0 ~ N(m, p²), μ_t = μ_{t−1} + N(0, σ²_η), y_t = μ_t + N(0, σ²_ε), σ² ~ InvGamma(a, b), density
    ∝ σ^{−2(a+1)} e^{−b/σ²}. It provides the conditionals of a Gibbs sampler: the level by forward
    filtering and backward sampling, each variance from its inverse-gamma.  Missing observations are
    left out.  The series is [R, T, 1].

    Raises ConfigMismatchError for multivariate observations.

    Source: Gallego (2021), section 1.2.2; Petris, Petrone and Campagnoli (2009), section 4.4.3."""

    requires = UNIVARIATE

    initial_mean: float
    initial_sd: PositiveFloat
    observation_shape: PositiveFloat
    observation_scale: PositiveFloat
    level_shape: PositiveFloat
    level_scale: PositiveFloat

    def build(self, problem: Sequence, rng: Rng) -> LocalLevelConditionals:
        problem.check_one_number(f"model={self.name}")
        return LocalLevelConditionals(self)
