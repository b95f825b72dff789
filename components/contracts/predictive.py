"""Predictive distributions: what the posterior of a supervised problem answers with.

Both are mixtures over S Monte-Carlo samples (posterior draws, ensemble members, particles), so that
every metric, attack and figure reads any method in the same way.  Shapes: S samples, B inputs, T
tasks, C classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


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
        log_density = -0.5 * (math.log(2 * math.pi) + self.v.log() + (y - self.mu) ** 2 / self.v)
        return torch.logsumexp(log_density, 0) - math.log(self.mu.shape[0])  # [B, T]

    def cdf(self, y: Tensor) -> Tensor:
        """P(Y ≤ y); a central interval of level c holds y when (1−c)/2 ≤ cdf ≤ (1+c)/2."""
        components: Tensor = torch.special.ndtr((y - self.mu) / self.v.sqrt())  # [S, B, T]
        return components.mean(0)

    def quantile(self, level: float, n_bisections: int = 50) -> Tensor:
        """The y at which the cdf is ``level``, by bisection between the outermost components' own
        quantiles."""
        deviation = float(torch.special.ndtri(torch.tensor(level, dtype=torch.float64)))
        # quantiles of the components: they bracket the mixture's
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
        if len(each) == 1:  # the mean of one would take a tenth of an attack's time
            return each[0]
        return torch.logsumexp(each, 0) - math.log(len(each))  # [B, T, C]

    @property
    def guess(self) -> Tensor:
        """The class of largest probability [B, T]."""
        # For a single sample take it from the logits; an attack asks at every step.
        return (self.logits[0] if len(self.logits) == 1 else self.log_probs).detach().argmax(-1)

    @property
    def probs(self) -> Tensor:
        return self.logits.softmax(-1).mean(0)  # [B, T, C]

    def log_prob(self, y: Tensor) -> Tensor:
        """log p(y) for class numbers y [B, T] (long)."""
        return self.log_probs.gather(-1, y.unsqueeze(-1)).squeeze(-1)  # [B, T]

    @property
    def entropy(self) -> Tensor:
        """Predictive entropy −Σ_c p log p, in nats."""
        terms: Tensor = torch.special.entr(self.probs)  # [B, T, C]
        return terms.sum(-1)


Predictive = GaussianMixture | Categorical
# ∂/∂f of its inputs, logits [S, B, T, C] -> ∂/∂x, shaped like x
Reverse = Callable[[Tensor], Tensor]


def concatenate(parts: list[Predictive]) -> Predictive:
    """Joins predictives of consecutive chunks of inputs (dimension B)."""
    gaussian = [p for p in parts if isinstance(p, GaussianMixture)]
    if gaussian:
        return GaussianMixture(
            torch.cat([p.mu for p in gaussian], 1), torch.cat([p.v for p in gaussian], 1)
        )
    return Categorical(torch.cat([p.logits for p in parts if isinstance(p, Categorical)], 1))
