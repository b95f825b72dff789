"""Draws of a known mixture of Gaussians."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.problems import Rows
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.figures.variational.clusters import clusters
from components.problems.unlabelled import Unlabelled
from components.registry import register


@register("dataset", "mixture_sim")
class MixtureSim(Dataset[Unlabelled]):
    """Rows of K Gaussian clusters with known weights, means, shapes and labels.

    Cluster k = 1 … K has weight ∝ 1 + (k − 1)/2, its mean on a circle of radius ``spread``
    in the first two values, at angle (2k + ½)π/K, and standard deviations 1 and ½ along
    axes turned by πk/K; further values are N(0, 1).  With a single value, means are
    ``spread`` apart.  Held-out rows are new draws, and inferred clusters are compared with
    their true clusters; every replicate draws new rows from the same mixture.  x [N, D].

    Source: designed for this project, after Bishop (2006), Figure 9.5.
    """

    kind = "unlabelled"
    values = "real"
    n_train: PositiveInt
    n_test: PositiveInt
    clusters: PositiveInt
    n_values: PositiveInt
    spread: PositiveFloat

    def truth(self) -> tuple[Tensor, Tensor, Tensor]:
        """Weights [K], means [K, D] and roots of the covariances [K, D, D]."""
        K = self.clusters
        D = self.n_values
        k = torch.arange(K, dtype=torch.float64)
        weights = (1 + 0.5 * k) / (1 + 0.5 * k).sum()
        means = torch.zeros(K, D, dtype=torch.float64)
        roots = torch.eye(D, dtype=torch.float64).repeat(K, 1, 1)
        if D == 1:
            means[:, 0] = self.spread * (k - k.mean())
            return weights, means, roots
        place = math.pi * (2 * k + 2.5) / K
        turn = math.pi * (k + 1) / K
        if K > 1:
            means[:, :2] = self.spread * torch.stack([place.cos(), place.sin()], 1)
        roots[:, 0, 0], roots[:, 1, 0] = turn.cos(), turn.sin()
        roots[:, 0, 1], roots[:, 1, 1] = -0.5 * turn.sin(), 0.5 * turn.cos()
        return weights, means, roots

    def load(self, rng: Rng, setting: Setting) -> Unlabelled:
        weights, means, roots = self.truth()

        def rows(n: int) -> tuple[Rows, Tensor]:
            z = torch.searchsorted(
                weights.cumsum(0), torch.rand(n, generator=rng.data, dtype=torch.float64)
            )
            z = z.clamp_max(self.clusters - 1)
            noise = torch.randn(n, self.n_values, generator=rng.data, dtype=torch.float64)
            x = means[z] + (roots[z] @ noise[:, :, None]).squeeze(2)
            return Rows(setting.place(x), 1.0), z

        train, _ = rows(self.n_train)
        test, classes = rows(self.n_test)
        return Unlabelled(
            self.name, "real", train, test, None, test_classes=classes, figures=[clusters]
        )
