"""The plain score-function gradient."""

from __future__ import annotations

from pydantic import PositiveInt

from components.contracts.capabilities import LogRatio
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate, StatelessGradient
from components.gradients.score.log_ratio import (
    Product,
    differentiable,
    elbo,
    factors,
    weighted_gradient,
)
from components.registry import register


@register("gradient", "reinforce")
class Reinforce(StatelessGradient[LogRatio[RowBatch]]):
    """Score-function gradient (Reinforce): each draw's score, weighted by its own log ratio.

        ĝ_φ = −N/B Σ_b S⁻¹ Σ_s f(z_sb) ∇_φ log q_φ(z_sb|x_b)
        f = log q_φ(z|x) − log p_θ(x, z)
        ĝ_θ = N/B Σ_b S⁻¹ Σ_s ∇_θ log p_θ(x_b, z_sb),   z_sb ~ q_φ(z|x_b)

    f [S, B] is multiplied row by row.  Unbiased for any S and B, without derivatives with respect
    to z; the variance grows with the distance of the bound from 0.  ``product: batch_sum``, only
    for comparison, has Σ_b' f(z_sb') in place of f(z_sb), as in the code released with the thesis:
    also unbiased, because scores of other rows have mean 0, but with the noise of B terms instead
    of one.  Terms: elbo of the whole data set in nats.  No state.

    Source: Boustati (2021), eq. (5.2); Williams (1992); Ranganath, Gerrish and Blei (2014).
    """

    requires = Requirements(capabilities={LogRatio})
    unbiased = True

    n_samples: PositiveInt
    product: Product

    def estimate(
        self, module: LogRatio[RowBatch], batch: RowBatch, rng: Rng, state: None
    ) -> Estimate[None]:
        f, pull_back = differentiable(module, batch, self.n_samples, rng.noise)
        return (
            weighted_gradient(batch, pull_back, f, -factors(f, self.product)),
            elbo(batch, f),
            None,
        )
