"""Predictive distributions, which posteriors of supervised problems return.

Each is a mixture over S Monte-Carlo samples (posterior draws, ensemble members, particles), so that
metrics, attacks and figures treat all methods alike.  Shapes: S samples, B inputs, T
tasks, C classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI


def top_class(f: Tensor) -> Tensor:
    """Class of the largest output f [..., C] -> [...]; −1 in rows without a finite maximum."""
    value, index = f.detach().max(-1)
    return torch.where(value.isfinite(), index, -1)


@dataclass(frozen=True)
class GaussianMixture:
    """p(y*|x*) = S⁻¹ Σ_s N(μ_s, v_s), per input and task; v includes the observation noise."""

    mu: Tensor  # [S, B, T]
    v: Tensor  # [S, B, T]

    @property
    def mean(self) -> Tensor:
        return self.mu.mean(0)  # [B, T]

    @property
    def variance(self) -> Tensor:
        """Law of total variance: E[v] + Var[μ]."""
        return self.v.mean(0) + self.mu.var(0, correction=0)  # [B, T]

    def log_prob(self, y: Tensor) -> Tensor:
        """log S⁻¹ Σ_s N(y | μ_s, v_s) for y [B, T]."""
        each = component_log_probs(self, y)
        return torch.logsumexp(each, 0) - math.log(self.mu.shape[0])  # [B, T]

    def cdf(self, y: Tensor) -> Tensor:
        """P(Y ≤ y); a central interval of level c contains y if (1−c)/2 ≤ cdf ≤ (1+c)/2."""
        components: Tensor = torch.special.ndtr((y - self.mu) / self.v.sqrt())  # [S, B, T]
        return components.mean(0)

    def quantile(self, level: float, n_bisections: int = 50) -> Tensor:
        """The y at which the cdf is ``level``, by bisection between the smallest and largest
        quantile of the components."""
        deviation = float(torch.special.ndtri(torch.tensor(level, dtype=torch.float64)))
        # quantiles of the components bracket the quantile of the mixture
        quantiles = self.mu + deviation * self.v.sqrt()
        low = quantiles.amin(0)
        high = quantiles.amax(0)  # [B, T]
        for _ in range(n_bisections):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < level
            low = torch.where(below, middle, low)
            high = torch.where(below, high, middle)
        return 0.5 * (low + high)  # [B, T]

    def rescale(self, location: Tensor, scale: Tensor) -> GaussianMixture:
        """The distribution of location + scale · Y, location and scale [T]."""
        return GaussianMixture(location + scale * self.mu, scale**2 * self.v)


@dataclass(frozen=True)
class Categorical:
    """p(y* = c|x*) = S⁻¹ Σ_s softmax(logits_s)_c; a binary label is C = 2."""

    logits: Tensor  # [S, B, T, C]

    @property
    def log_probs(self) -> Tensor:
        each = self.logits.log_softmax(-1)  # [S, B, T, C]
        if len(each) == 1:  # a mean over one sample would take a tenth of an attack's time
            return each[0]
        return torch.logsumexp(each, 0) - math.log(len(each))  # [B, T, C]

    @property
    def guess(self) -> Tensor:
        """The most probable class, −1 where probabilities are NaN [B, T]."""
        # for a single sample from the logits: attacks call this at every step
        return top_class(self.logits[0] if len(self.logits) == 1 else self.log_probs)

    @property
    def probs(self) -> Tensor:
        return self.logits.softmax(-1).mean(0)  # [B, T, C]

    def log_prob(self, y: Tensor) -> Tensor:
        """log p(y) of class numbers y [B, T] (long)."""
        return self.log_probs.gather(-1, y.unsqueeze(-1)).squeeze(-1)  # [B, T]

    @property
    def entropy(self) -> Tensor:
        """Predictive entropy −Σ_c p log p, in nats."""
        terms: Tensor = torch.special.entr(self.probs)  # [B, T, C]
        return terms.sum(-1)


@dataclass(frozen=True)
class PoissonMixture:
    """p(y* = k|x*) = Σ_s w_s Poisson(k | e^f_s), counts per input and task."""

    log_rate: Tensor  # f [S, B, T]
    log_weights: Tensor  # log w [S], up to a constant

    @property
    def _log_shares(self) -> Tensor:
        return self.log_weights.log_softmax(0)[:, None, None]  # [S, 1, 1]

    @property
    def mean(self) -> Tensor:
        return (self._log_shares + self.log_rate).logsumexp(0).exp()  # [B, T]

    @property
    def variance(self) -> Tensor:
        """E[eᶠ] + Var[eᶠ]."""
        second = (self._log_shares + 2 * self.log_rate).logsumexp(0).exp()
        return self.mean + (second - self.mean.square()).clamp_min(0)

    def log_prob(self, y: Tensor) -> Tensor:
        """log p(y) of counts y [B, T]."""
        return (self._log_shares + component_log_probs(self, y)).logsumexp(0)  # [B, T]

    def cdf(self, y: Tensor) -> Tensor:
        """P(Y ≤ y), a step function of y; Q(⌊y⌋ + 1, eᶠ) of each component."""
        count = torch.floor(y) + 1
        rate = self.log_rate.exp()
        each = torch.special.gammaincc(count.clamp_min(1).expand_as(rate), rate)
        return torch.where(count > 0, (self._log_shares.exp() * each).sum(0), 0.0)

    def quantile(self, level: float) -> Tensor:
        """The smallest count with cdf ≥ ``level`` [B, T], by bisection."""
        high = 1 + self.log_rate.amax(0).exp().mul(20).ceil().nan_to_num(torch.nan, torch.nan)
        low = torch.full_like(high, -1.0)
        while bool((high - low > 1).any()):
            middle = ((low + high) / 2).floor()
            enough = self.cdf(middle) >= level
            low = torch.where(enough, low, middle)
            high = torch.where(enough, middle, high)
        return high


Predictive = GaussianMixture | Categorical | PoissonMixture
# ∂/∂f of its inputs, logits [S, B, T, C] -> ∂/∂x, shaped like x
Reverse = Callable[[Tensor], Tensor]
# outputs with the map from ∂/∂f to ∂/∂x, without an autograd graph; None if not available
ReversedPredictive = tuple[Predictive, Reverse] | None
ReversedOutputs = tuple[Tensor, Reverse] | None


def is_finite(predictive: Predictive) -> Tensor:
    """True where all numbers of a prediction are finite [B, T] bool."""
    if isinstance(predictive, Categorical):
        return predictive.guess >= 0
    return predictive.mean.isfinite() & predictive.variance.isfinite()


def components_of(predictive: Predictive) -> Tensor:
    """Means [S, B, T] of the components of a mixture, logits [S, B, T, C] or log rates [S, B, T]."""
    if isinstance(predictive, GaussianMixture):
        return predictive.mu
    return predictive.logits if isinstance(predictive, Categorical) else predictive.log_rate


def component_log_probs(predictive: Predictive, y: Tensor) -> Tensor:
    """log p(y | component s) [S, B, T] of labels y [B, T]."""
    if isinstance(predictive, GaussianMixture):
        residual = y - predictive.mu
        return -0.5 * (LOG_2PI + predictive.v.log() + residual**2 / predictive.v)
    if isinstance(predictive, PoissonMixture):
        return y * predictive.log_rate - predictive.log_rate.exp() - (y + 1).lgamma()
    each = predictive.logits.log_softmax(-1)
    return each.gather(-1, y.expand(each.shape[:-1]).unsqueeze(-1)).squeeze(-1)


def sample_labels(predictive: Predictive, generator: torch.Generator) -> Tensor:
    """Draw one label from each component, y [S, B, T]."""
    device = generator.device
    if isinstance(predictive, GaussianMixture):
        z = torch.randn(
            predictive.mu.shape, generator=generator, dtype=predictive.mu.dtype, device=device
        )
        return predictive.mu + predictive.v.sqrt() * z.to(predictive.mu.device)
    if isinstance(predictive, PoissonMixture):
        return torch.poisson(predictive.log_rate.exp().to(device), generator=generator)
    p = predictive.logits.softmax(-1)  # [S, B, T, C]
    drawn = torch.multinomial(p.flatten(0, -2).to(device), 1, generator=generator)
    return drawn.view(p.shape[:-1]).to(p.device)


def part_of(
    predictive: Predictive, components: Any = slice(None), rows: Any = slice(None)
) -> Predictive:
    """Select components and inputs."""
    if isinstance(predictive, GaussianMixture):
        return GaussianMixture(
            predictive.mu[components][:, rows], predictive.v[components][:, rows]
        )
    if isinstance(predictive, Categorical):
        return Categorical(predictive.logits[components][:, rows])
    log_rate = predictive.log_rate[components][:, rows]
    return PoissonMixture(log_rate, predictive.log_weights[components])


def join(parts: list[Predictive], dim: int) -> Predictive:
    """Concatenate predictives: samples of one mixture (dim 0), or consecutive inputs (dim 1)."""
    first = parts[0]
    if isinstance(first, GaussianMixture):
        normal = [p for p in parts if isinstance(p, GaussianMixture)]
        mu = torch.cat([p.mu for p in normal], dim)
        v = torch.cat([p.v for p in normal], dim)
        return GaussianMixture(mu, v)
    if isinstance(first, PoissonMixture):
        counts = [p for p in parts if isinstance(p, PoissonMixture)]
        weights = torch.cat([p.log_weights for p in counts]) if dim == 0 else first.log_weights
        return PoissonMixture(torch.cat([p.log_rate for p in counts], dim), weights)
    return Categorical(torch.cat([p.logits for p in parts if isinstance(p, Categorical)], dim))


def concatenate(parts: list[Predictive]) -> Predictive:
    """Join predictives of consecutive chunks of inputs (dimension B)."""
    return join(parts, 1)
