"""Decision rules: losses, the actions that minimise their posterior expectation, and the expected
losses.

    belief = samples_of(draws)                      # or a predictive, which needs no sampling
    loss = Pinball(0.9)
    action = loss.act(belief)                       # the Bayes action a* = argmin_a E[L(a, s)]
    cost = loss.expected(action, belief)            # E[L(a*, s)], the posterior expected loss

The expectation is over the posterior of the unknown s (a parameter, a new label, the index of a
model): weighted draws (``Samples``), a ``GaussianMixture`` or a ``Categorical``.  L(a, s) =
−u(a(s)) in the notation of the notes.

Source: Bardenet (2021), Figure 2.1 and eq. (2.4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from components.contracts.predictive import Categorical, GaussianMixture
from components.posteriors.draws import Draws

GRID_POINTS = 65  # number of candidate actions between the outermost means of a mixture
GOLDEN = (math.sqrt(5) - 1) / 2
GOLDEN_STEPS = 40  # golden-section steps; each leaves 0.618 of the interval


@dataclass(frozen=True)
class Samples:
    """A distribution of weighted draws; every coordinate of ``values`` is a separate unknown."""

    values: Tensor  # [S, ...]
    weights: Tensor  # [S], sum to 1

    @property
    def mean(self) -> Tensor:
        return torch.tensordot(self.weights, self.values, 1)

    @property
    def variance(self) -> Tensor:
        return torch.tensordot(self.weights, (self.values - self.mean) ** 2, 1)

    def quantile(self, level: float) -> Tensor:
        """The smallest draw at which the cumulative weight reaches ``level``, for each
        coordinate."""
        ordered, order = self.values.sort(0)
        # the sum of S weights may differ from 1 by rounding
        reached = self.weights.double()[order].cumsum(0) >= level - 1e-12
        reached[-1] = True
        return ordered.gather(0, reached.long().argmax(0, keepdim=True))[0]


def to_samples(draws: Draws) -> Samples:
    """Samples of the parameters from a sampler's draws [C·N, P'], with importance weights."""
    return Samples(draws.values.flatten(0, 1), draws.weights)


Belief = Samples | GaussianMixture


class Loss(Protocol):
    """Loss L(a, s) of action a for the value s, with Bayes action and expected loss under a belief
    about s."""

    def act(self, belief: Samples) -> Tensor: ...

    def expected_loss(self, action: Tensor, belief: Samples) -> Tensor: ...


def shortfall(belief: Belief, a: Tensor) -> Tensor:
    """E[(a − s)₊], the building block of every piecewise linear loss."""
    if isinstance(belief, Samples):
        return torch.tensordot(belief.weights, (a - belief.values).clamp_min(0), 1)
    scale = belief.v.sqrt()
    z = (a - belief.mu) / scale
    density = (-0.5 * z**2).exp() / math.sqrt(2 * math.pi)
    return (scale * (z * torch.special.ndtr(z) + density)).mean(0)


# Regression and point estimation
@dataclass(frozen=True)
class Squared:
    """L = (s − a)²: the mean.

    Source: Bardenet (2021), Figure 2.1, regression and point estimation."""

    def __call__(self, action: Tensor, s: Tensor) -> Tensor:
        return (s - action) ** 2

    def act(self, belief: Belief) -> Tensor:
        return belief.mean

    def expected_loss(self, action: Tensor, belief: Belief) -> Tensor:
        return belief.variance + (belief.mean - action) ** 2


@dataclass(frozen=True)
class Pinball:
    """L = τ (s − a)₊ + (1 − τ) (a − s)₊: the quantile of level τ; twice it at τ = ½ is the absolute
    loss.

    Source: Koenker and Bassett (1978), section 2."""

    level: float  # τ, in (0, 1)

    def __call__(self, action: Tensor, s: Tensor) -> Tensor:
        return torch.maximum(self.level * (s - action), (self.level - 1) * (s - action))

    def act(self, belief: Belief) -> Tensor:
        return belief.quantile(self.level)

    def expected_loss(self, action: Tensor, belief: Belief) -> Tensor:
        return shortfall(belief, action) - self.level * (action - belief.mean)


@dataclass(frozen=True)
class AbsoluteLoss:
    """L = |s − a|: the median.

    Source: Bardenet (2021), section 1.2."""

    def __call__(self, action: Tensor, s: Tensor) -> Tensor:
        return (s - action).abs()

    def act(self, belief: Belief) -> Tensor:
        return belief.quantile(0.5)

    def expected_loss(self, action: Tensor, belief: Belief) -> Tensor:
        return 2 * Pinball(0.5).expected_loss(action, belief)


@dataclass(frozen=True)
class ToleranceLoss:
    """L = 1{|s − a| > r}, the 0–1 loss on the line: the centre of the window of length 2r with most
    mass, which tends to the mode as r → 0.

    Source: Robert (2007), section 4.1."""

    radius: float

    def __call__(self, action: Tensor, s: Tensor) -> Tensor:
        # draws on the edge count as inside
        return ((s - action).abs() > self.radius * (1 + 1e-12)).to(s.dtype)

    def act(self, belief: Belief) -> Tensor:
        if isinstance(belief, GaussianMixture):
            return self._act_on_mixture(belief)
        # [d, S]: an optimal window starts at a draw
        ordered, order = belief.values.flatten(1).T.contiguous().sort(1)
        sum_before = torch.nn.functional.pad(belief.weights[order].cumsum(1), (1, 0))
        end = torch.searchsorted(ordered, ordered + 2 * self.radius, right=True)
        mass = sum_before.gather(1, end) - sum_before[:, :-1]
        best = mass.argmax(1, keepdim=True)
        last = ordered.gather(1, end.gather(1, best) - 1)
        return (0.5 * (ordered.gather(1, best) + last)).reshape(belief.values.shape[1:])

    def _act_on_mixture(self, belief: GaussianMixture) -> Tensor:
        """The centre of the window with most mass [...]: the best of a grid between the outermost
        means, which enclose it, refined by golden section."""
        low = belief.mu.amin(0)
        step = (belief.mu.amax(0) - low) / (GRID_POINTS - 1)
        best = low
        least = self.expected_loss(best, belief)
        for k in range(1, GRID_POINTS):
            loss = self.expected_loss(low + k * step, belief)
            best = torch.where(loss < least, low + k * step, best)
            least = torch.minimum(loss, least)
        lower = best - step
        upper = best + step
        for _ in range(GOLDEN_STEPS):
            a = upper - GOLDEN * (upper - lower)
            b = lower + GOLDEN * (upper - lower)
            is_left = self.expected_loss(a, belief) < self.expected_loss(b, belief)
            lower = torch.where(is_left, lower, a)
            upper = torch.where(is_left, b, upper)
        return 0.5 * (lower + upper)

    def expected_loss(self, action: Tensor, belief: Belief) -> Tensor:
        if isinstance(belief, GaussianMixture):
            return 1 - (belief.cdf(action + self.radius) - belief.cdf(action - self.radius))
        return torch.tensordot(belief.weights, self(action, belief.values), 1)


# Classification and model choice: the unknown is one of C
@dataclass(frozen=True)
class CostMatrixLoss:
    """L = cost[a, c] of action a for class c; there may be more actions than classes (for example,
    "ask an expert").

    Source: Bardenet (2021), Figure 2.1, classification and model choice."""

    cost: Tensor  # [A, C]

    @classmethod
    def zero_one(cls, n: int) -> CostMatrixLoss:
        """1{a ≠ c}: the most probable class."""
        return cls(1 - torch.eye(n, dtype=torch.float64))

    def __call__(self, action: Tensor, s: Tensor) -> Tensor:
        return self.cost[action, s]

    def act(self, belief: Categorical | Tensor) -> Tensor:
        """Action numbers [...] under the probabilities [..., C] of a belief."""
        return (_to_probs(belief) @ self.cost.T.to(_to_probs(belief))).argmin(-1)

    def expected_loss(self, action: Tensor, belief: Categorical | Tensor) -> Tensor:
        probs = _to_probs(belief)
        return (self.cost.to(probs)[action] * probs).sum(-1)


def _to_probs(belief: Categorical | Tensor) -> Tensor:
    return belief.probs if isinstance(belief, Categorical) else belief


def model_probabilities(log_evidence: Tensor, log_prior: Tensor | None = None) -> Tensor:
    """p(m|y) ∝ p(y|m) p(m) of M models [..., M], with equal prior probabilities by default.

    For two models under 0–1 costs, the first is chosen if the posterior odds p(1|y)/p(2|y) exceed
    1.

    Source: Robert (2007), chapter 7."""
    return (log_evidence if log_prior is None else log_evidence + log_prior).softmax(-1)
