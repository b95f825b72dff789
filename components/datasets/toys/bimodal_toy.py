"""A function of one input with two branches."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.predictive import GaussianMixture
from components.datasets.toys.conditional_toy import ConditionalToy
from components.registry import register


@register("dataset", "bimodal_toy")
class BimodalToy(ConditionalToy):
    """Bimodal regression on one input: a Gaussian does not fit the labels for any variance.

    y = 10 sin x + ε or 10 cos x + ε, each with probability ½, ε ~ N(0, 1), x uniform on
    [−2, 2].  Inputs and labels are standardised by the training rows; RMSE and
    log-likelihood are scored in the units of y, where the true conditional distribution has
    a mean log-likelihood of −2.07 and the best Gaussian one of −3.04.

    Source: Rodríguez Santana and Hernández-Lobato (2020), section 6.1; Depeweg et al.
    (2017).
    """

    reach = 2.0

    @staticmethod
    def law(x: Tensor) -> GaussianMixture:
        """½ N(10 sin x, 1) + ½ N(10 cos x, 1)."""
        mu = torch.stack([10 * x.sin(), 10 * x.cos()])[..., None]
        return GaussianMixture(mu, torch.ones_like(mu))
