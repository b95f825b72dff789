"""VarGrad: the gradient of half the variance of the log ratio."""

from __future__ import annotations

from components.contracts.capabilities import LogRatio
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import AtLeastTwo
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


@register("gradient", "vargrad")
class VarGrad(StatelessGradient[LogRatio[RowBatch]]):
    """VarGrad: the guide minimises the variance of the log ratio over its own draws.

    Nothing is differentiated through the draws.

        ĝ_φ = −∇_φ N/B Σ_b (2 (S − 1))⁻¹ Σ_s (f_φ(z_sb) − f̄_b)²
        f_φ = log q_φ(z|x) − log p(x, z)
        ĝ_θ = N/B Σ_b S⁻¹ Σ_s ∇_θ log p_θ(x_b, z_sb),   z_sb ~ q_φ(z|x_b)

    f [S, B].  Equal to Reinforce with the mean of the row's other S − 1 draws as baseline,
    hence unbiased; 0 at every draw if the guide is the posterior. ``product: batch_sum``, only for
    comparison, uses the variance of Σ_b f(z_sb), as in the code released with the thesis (which
    also omits the ½): also unbiased, but with the noise of every row in each row's gradient.
    Terms: elbo of the whole data set in nats.  No state.

    Raises:
        ConfigError: there is only one draw.

    Source: Boustati (2021), Algorithm 5, eqs. (5.9) and (5.10); Kool, van Hoof and Welling
    (2019).
    """

    requires = Requirements(capabilities={LogRatio})
    unbiased = True

    n_samples: AtLeastTwo
    product: Product

    def estimate(
        self, module: LogRatio[RowBatch], batch: RowBatch, rng: Rng, state: None
    ) -> Estimate[None]:
        # only values of p enter the variance: its parameters follow the mean of log p
        f, pull_back = differentiable(module, batch, self.n_samples, rng.noise)
        away = factors(f, self.product)
        # derivative of half the variance by f [S, B] or [S, 1]
        slope = (away - away.mean(0)) / (self.n_samples - 1)
        return weighted_gradient(batch, pull_back, f, -self.n_samples * slope), elbo(batch, f), None
