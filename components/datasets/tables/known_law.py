"""Real labels with a known conditional distribution to compare predictions with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from components.contracts.posteriors import Predicts
from components.contracts.predictive import GaussianMixture
from components.contracts.streams import Rng
from components.datasets.tables.raw_units import RawUnits
from components.metrics.branches import both_branches

EVERY = 10  # test rows of which one is looked at for branches


@dataclass
class KnownLaw(RawUnits):
    """``law_at`` says p(y|x), in the units of y, of standardised inputs x [B, 1]."""

    law_at: Callable[[Tensor], GaussianMixture] | None = None

    def score(self, posterior: Predicts, rng: Rng) -> dict[str, Tensor | float]:
        """Besides: ``nlpp_of_law``, which no other law is below in expectation, and
        ``both_branches`` where there are two."""
        assert self.law_at is not None
        assert self.y_mean is not None
        assert self.y_std is not None
        scores = super().score(posterior, rng)
        law = self.law_at(self.test.x)
        scores["nlpp_of_law"] = -law.log_prob(self.y_mean + self.y_std * self.test.y).mean()
        predictive = self.predictive_at(posterior, self.test.x, rng)
        if len(law.mu) == 2 and isinstance(predictive, GaussianMixture):
            raw = predictive.rescale(self.y_mean, self.y_std)
            some = GaussianMixture(raw.mu[:, ::EVERY], raw.v[:, ::EVERY])
            scores["both_branches"] = both_branches(
                some, GaussianMixture(law.mu[:, ::EVERY], law.v[:, ::EVERY])
            )
        return scores
