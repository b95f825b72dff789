"""Multi-head Bayesian network of two layers."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import PositiveFloat, PositiveInt

from components.interfaces import Model, Rng
from components.models.networks.feed_forward import FeedForward
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "mbnn2")
class MBNN2(Model):
    """mBNN2: multi-head Bayesian neural network of two layers, with a normal prior on every weight and bias.

    The shared hidden layer is the first, the heads are the second, one for each task.  ReLU; Glorot
    initialisation (of the means, under inference=mean_field_vi); θ ~ N(0, s²) independently, s = 1 in the thesis.

    Source: Boustati (2021), section 3.5 and appendix A.1."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    offers: ClassVar[frozenset[str]] = frozenset({"network", "weight_space", "log_joint"})

    widths: list[PositiveInt]
    prior_std: PositiveFloat
    noise: Literal["learned"] | PositiveFloat
    noise_init: PositiveFloat
    noise_spread: PositiveFloat | None

    def build(self, problem: Supervised, rng: Rng) -> FeedForward:
        return FeedForward(
            problem,
            rng,
            widths=self.widths,
            activation="relu",
            dropout=0.0,
            prior_std=self.prior_std,
            noise=self.noise,
            noise_init=self.noise_init,
            noise_spread=self.noise_spread,
        )
