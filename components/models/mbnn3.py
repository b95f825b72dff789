"""Multi-head Bayesian network of three layers."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import PositiveFloat, PositiveInt

from components.interfaces import Model, Rng
from components.models.networks.feed_forward import FeedForward
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "mbnn3")
class MBNN3(Model):
    """mBNN3: multi-head Bayesian neural network of three layers, with a normal prior on every weight and bias.

    The two shared hidden layers are the first two, the heads are the third, one for each task.  ReLU; Glorot
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
