"""What the multi-task networks of Boustati's tables declare in common: shared ReLU layers, and a head for each task."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import BaseModel, PositiveFloat, PositiveInt

from components.contracts.streams import Rng
from components.models.networks.feed_forward import DropoutRate, FeedForward
from components.problems.supervised import Supervised


class Dropped(BaseModel):
    """Keys of a network with dropout and an L2 penalty λ Σ θ² on its mean loss, that is θ ~ N(0, 1/(2λN))."""

    widths: list[PositiveInt]
    dropout: DropoutRate
    l2: PositiveFloat
    noise: Literal["learned"] | PositiveFloat
    noise_init: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> FeedForward:
        return _network(self, problem, rng, self.dropout, math.sqrt(1 / (2 * self.l2 * problem.n)), None)


class NormalPrior(BaseModel):
    """Keys of a Bayesian network, θ ~ N(0, s²) and log σ_t² ~ N(log noise_init, noise_spread²)."""

    widths: list[PositiveInt]
    prior_std: PositiveFloat
    noise: Literal["learned"] | PositiveFloat
    noise_init: PositiveFloat
    noise_spread: PositiveFloat | None

    def build(self, problem: Supervised, rng: Rng) -> FeedForward:
        return _network(self, problem, rng, 0.0, self.prior_std, self.noise_spread)


def _network(
    keys: Dropped | NormalPrior,
    problem: Supervised,
    rng: Rng,
    dropout: float,
    prior_std: float,
    noise_spread: float | None,
) -> FeedForward:
    return FeedForward(
        problem,
        rng,
        widths=keys.widths,
        activation="relu",
        dropout=dropout,
        prior_std=prior_std,
        noise=keys.noise,
        noise_init=keys.noise_init,
        noise_spread=noise_spread,
    )
