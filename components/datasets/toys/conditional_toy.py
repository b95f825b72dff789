"""Base class of toy regressions in which the label distribution depends on the input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.checks import NamedScores
from components.contracts.posteriors import Predicts
from components.contracts.predictive import GaussianMixture
from components.contracts.roles import AtLeastTwo, Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.tables.raw_units import RawUnits
from components.figures.supervised.calibration import calibration
from components.figures.supervised.predictive_samples import predictive_samples
from components.maths.exponential.standard_draws import normal_like, standard_uniform
from components.metrics.branches import both_branches

EVERY = 10  # every 10th test row is checked for branches


@dataclass
class KnownLaw(RawUnits):
    """Problem with ``law_at``: p(y|x), in the units of y, at standardised inputs x [B, 1]."""

    law_at: Callable[[Tensor], GaussianMixture] | None = None

    def score(self, posterior: Predicts, rng: Rng) -> NamedScores:
        """Also scores ``nlpp_of_law``, the lowest possible expected NLPP, and ``both_branches`` if
        there are two branches."""
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


class ConditionalToy(Dataset[KnownLaw]):
    """x uniform on [−reach, reach], y ~ p(y|x), an equally weighted mixture of Gaussians.  Both are
    standardised by the training rows; scores are in the units of y."""

    kind = "supervised"
    label_kind = "real"
    reach: ClassVar[float]
    n_train: AtLeastTwo
    n_test: PositiveInt
    batch_size: PositiveInt | None

    @staticmethod
    def law(x: Tensor) -> GaussianMixture:
        """p(y|x) at inputs x [B], with μ and v [S, B, 1]."""
        raise NotImplementedError

    @classmethod
    def sample_labels(cls, x: Tensor, generator: torch.Generator) -> Tensor:
        """y ~ p(y|x) [B] at inputs x [B], in float64."""
        law = cls.law(x)
        places = torch.arange(len(x))
        component = torch.zeros(len(x), dtype=torch.long)
        if len(law.mu) > 1:
            u = standard_uniform(x.shape, generator, x)
            component = (u * len(law.mu)).long()
        noise = normal_like(x, generator)
        return law.mu[component, places, 0] + law.v[component, places, 0].sqrt() * noise

    def load(self, rng: Rng, setting: Setting) -> KnownLaw:
        n = self.n_train
        u = torch.rand(
            n + self.n_test, generator=rng.data, dtype=torch.float64, device=rng.data.device
        ).cpu()
        x = self.reach * (2 * u - 1)
        y = self.sample_labels(x, rng.data)
        train_rows = slice(0, n)
        problem = KnownLaw.of(
            self.name,
            (x[:, None], y[:, None]),
            train_rows,
            slice(n, None),
            batch_size=self.batch_size,
            label="y",
            setting=setting,
            figures=[predictive_samples, calibration],
        )
        location = x[train_rows].mean()
        scale = x[train_rows].std(correction=0)

        def law_at(inputs: Tensor) -> GaussianMixture:
            law = self.law(location + scale * inputs[:, 0].cpu().double())
            return GaussianMixture(law.mu.to(inputs), law.v.to(inputs))

        problem.law_at = law_at
        return problem
