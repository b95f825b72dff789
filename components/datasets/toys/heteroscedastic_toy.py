"""A function of one input with heteroscedastic noise."""

from __future__ import annotations

from torch import Tensor

from components.contracts.predictive import GaussianMixture
from components.datasets.toys.conditional_toy import ConditionalToy
from components.registry import register


@register("dataset", "heteroscedastic_toy")
class HeteroscedasticToy(ConditionalToy):
    """Heteroscedastic regression on one input, a test of predictive distributions.

    y = 7 sin x + 3 |cos(x/2)| ε, ε ~ N(0, 1), x uniform on [−4, 4].  Inputs and labels are
    standardised by the training rows; RMSE and log-likelihood are scored in the units of y,
    where the true conditional distribution has a mean log-likelihood of −1.57.

    Source: Rodríguez Santana and Hernández-Lobato (2020), section 6.1; Depeweg et al.
    (2017).
    """

    reach = 4.0

    @staticmethod
    def law(x: Tensor) -> GaussianMixture:
        """N(7 sin x, 9 cos²(x/2))."""
        return GaussianMixture(
            (7 * x.sin())[None, :, None], (9 * (x / 2).cos().square())[None, :, None]
        )
