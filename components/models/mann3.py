"""Multi-head network of three layers with dropout."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import PositiveFloat, PositiveInt

from components.interfaces import Model, Rng
from components.models.networks.feed_forward import DropoutRate, FeedForward
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "mann3")
class MANN3(Model):
    """mANN3: multi-head feed-forward network of three layers, with dropout and L2 regularisation.

    The two shared hidden layers are the first two, the heads are the third, one for each task.  ReLU; Glorot
    initialisation; L2 adds λ Σ θ² to the mean over rows of −log p(y|x, θ), the same as a prior θ ~ N(0, 1/(2λN)).  Its
    uncertainty is that of inference=mc_dropout.

    Source: Boustati (2021), section 3.5 and appendix A.1."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    offers: ClassVar[frozenset[str]] = frozenset({"network", "weight_space"})

    widths: list[PositiveInt]
    dropout: DropoutRate
    l2: PositiveFloat
    noise: Literal["learned"] | PositiveFloat
    noise_init: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> FeedForward:
        return FeedForward(
            problem,
            rng,
            widths=self.widths,
            activation="relu",
            dropout=self.dropout,
            prior_std=math.sqrt(1 / (2 * self.l2 * problem.n)),
            noise=self.noise,
            noise_init=self.noise_init,
            noise_spread=None,
        )
