"""Draws from a normal distribution."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, PositiveInt

from components.contracts.problems import Rows
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.figures.variational.beside_exact import beside_exact
from components.problems.unlabelled import Unlabelled
from components.registry import register


@register("dataset", "normal_sample")
class NormalSample(Dataset[Unlabelled]):
    """Independent draws from a normal with known mean and standard deviation.

    x ~ N(μ, σ²).  Held-out rows are new draws; every replicate redraws all rows.  For a model with
    two parameters, a figure shows contours of the exact posterior and of its approximation.  x [N,
    1].

    Source: Bishop (2006), section 10.1.3, Figure 10.4.
    """

    kind = "unlabelled"
    traits = {"single_values"}
    values = "real"
    n_train: PositiveInt
    n_test: PositiveInt
    mean: float
    sd: PositiveFloat

    def load(self, rng: Rng, setting: Setting) -> Unlabelled:
        def rows(n: int) -> Rows:
            x = self.mean + self.sd * torch.randn(n, 1, generator=rng.data, dtype=torch.float64)
            return Rows(setting.place(x), 1.0)

        train = rows(self.n_train)
        return Unlabelled(
            self.name, "real", train, rows(self.n_test), batch_size=None, figures=[beside_exact]
        )
