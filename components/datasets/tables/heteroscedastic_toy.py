"""A function of one input under noise that grows and falls with it."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from components.datasets.tables.conditional_toy import ConditionalToy
from components.registry import register


@register("dataset", "heteroscedastic_toy")
class HeteroscedasticToy(ConditionalToy):
    """Regression of one input whose noise depends on it: a test of what a predictive distribution can follow.

    y = 7 sin x + 3 |cos(x/2)| ε, ε ~ N(0, 1), x uniform on [−4, 4].  Inputs and labels are standardised by the training rows;
    RMSE and log-likelihood are scored in the units of y, where the law itself has a mean log-likelihood of −1.57.

    Source: Rodríguez Santana and Hernández-Lobato (2020), section 6.1; Depeweg et al. (2017)."""

    reach: ClassVar[float] = 4.0

    @staticmethod
    def law(x: Tensor, generator: torch.Generator) -> Tensor:
        """y = 7 sin x + 3 |cos(x/2)| ε, ε ~ N(0, 1), x [B] -> [B]."""
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=generator.device).to(x.device)
        return 7 * x.sin() + 3 * (x / 2).cos().abs() * noise
