"""Mean and variance of the sum of future sales under posterior draws, linear and quadratic in the
spends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.contracts.predictive import GaussianMixture

Array = NDArray[np.float64]


def numbers(value: Tensor) -> Array:
    """A tensor as a float64 numpy array."""
    return value.detach().double().cpu().numpy()


@dataclass(frozen=True)
class SumLaw:
    """The sum y_{t+1} + … + y_{t+k} given n spends u: N(a_s + r_s'u, v_s) under draw s, with
    equally likely draws.

    E = ā + r̄'u and Var = v̄ + Var(a) + 2 Cov(a, r)'u + u' Cov(r) u, over the draws, by the law of
    total variance.

    Source: Gallego (2021), section 1.2.4, "Budget allocation"."""

    a: Array  # [S] expected sum without further spending
    r: Array  # [S, n] increase of the sum per unit of each spend
    v: Array  # [S] variance of the sum under one draw

    @classmethod
    def of_draws(cls, base: Tensor, response: Tensor, noise_variance: Tensor) -> SumLaw:
        """Law of the sum over k weeks from S draws.

        Args:
            base: [S, k].
            response: [S, k, n].
            noise_variance: variance of the sum of the noises [S].
        """
        return cls(numbers(base.sum(1)), numbers(response.sum(1)), numbers(noise_variance))

    @property
    def size(self) -> int:
        return self.r.shape[1]

    @cached_property
    def effect(self) -> Array:
        """r̄ [n], the gradient of the mean."""
        return self.r.mean(0)

    @cached_property
    def spread(self) -> Array:
        """Cov(r) [n, n]."""
        away = self.r - self.effect
        return away.T @ away / len(away)

    @cached_property
    def shared(self) -> Array:
        """Cov(a, r) [n]."""
        return (self.r - self.effect).T @ (self.a - self.a.mean()) / len(self.a)

    @cached_property
    def base_variance(self) -> float:
        """v̄ + Var(a)."""
        return float(self.v.mean() + self.a.var())

    def mean(self, u: Array) -> float:
        return float(self.a.mean() + self.effect @ u)

    def variance(self, u: Array) -> float:
        return self.base_variance + float((2 * self.shared + self.spread @ u) @ u)

    def slope(self, u: Array) -> Array:
        """∇ Var = 2 (Cov(a, r) + Cov(r) u)  [n]."""
        return 2 * (self.shared + self.spread @ u)

    def sd(self, u: Array) -> float:
        return float(np.sqrt(self.variance(u)))

    def quantile(self, u: Array, level: float) -> float:
        """Quantile ``level`` of the sum under the mixture of the draws.

        For normal errors this is exact given the draws.  Student-t errors have a precision for
        each week, drawn with each draw and contained in v_s, so the mixture is a Monte-Carlo
        average; mean − λ sd is not one of its quantiles.
        """
        mu, v = (torch.from_numpy(x)[:, None, None] for x in (self.a + self.r @ u, self.v))
        return float(GaussianMixture(mu, v).quantile(level))
