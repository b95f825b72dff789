"""A function of one input under noise that grows and falls with it."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.contracts.problems import Kind, Target
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.tables.conditional_toy import conditional_toy
from components.problems.supervised import Supervised
from components.registry import register


def law(x: Tensor, generator: torch.Generator) -> Tensor:
    """y = 7 sin x + 3 |cos(x/2)| ε, ε ~ N(0, 1), x [B] -> [B]."""
    noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=generator.device).to(x.device)
    return 7 * x.sin() + 3 * (x / 2).cos().abs() * noise


@register("dataset", "heteroscedastic_toy")
class HeteroscedasticToy(Dataset):
    """Regression of one input whose noise depends on it: a test of what a predictive distribution can follow.

    y = 7 sin x + 3 |cos(x/2)| ε, ε ~ N(0, 1), x uniform on [−4, 4].  Inputs and labels are standardised by the training rows;
    RMSE and log-likelihood are scored in the units of y, where the law itself has a mean log-likelihood of −1.57.

    Source: Rodríguez Santana and Hernández-Lobato (2020), section 6.1; Depeweg et al. (2017)."""

    kind: ClassVar[Kind] = "supervised"
    target: ClassVar[Target | None] = "real"
    n_train: Annotated[int, Field(ge=2)]
    n_test: PositiveInt
    batch_size: PositiveInt | None

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        return conditional_toy(self.name, law, 4.0, self.n_train, self.n_test, self.batch_size, rng, setting)
