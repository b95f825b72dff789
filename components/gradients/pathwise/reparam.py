"""The reparameterisation gradient."""

from __future__ import annotations

from pydantic import PositiveInt

from components.contracts.capabilities import Pathwise
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate, StatelessGradient
from components.gradients.pathwise.bound import whole_gradient
from components.registry import register


@register("gradient", "reparam")
class Reparam(StatelessGradient[Pathwise[RowBatch]]):
    """Reparameterisation gradient: the bound is differentiated through the draws.

        ∇_φ [N/B Σ_b S⁻¹ Σ_s ℓ_b(ε_s; φ) − KL(φ)],   ε_s ~ p(ε)

    The draws are a function of the noise.  ℓ [S, B] are the bounds of single rows and KL is the
    part shared by all rows.  Unbiased for any S and B; the variance is proportional to 1/S. Terms:
    elbo and, if rows share a term, kl, for the whole data set in nats.  No state.

    Source: Kingma and Welling (2014), eqs. (8) and (10); Rezende, Mohamed and Wierstra
    (2014), section 3.
    """

    requires = Requirements(capabilities={Pathwise})
    unbiased = True

    n_samples: PositiveInt

    def estimate(
        self, module: Pathwise[RowBatch], batch: RowBatch, rng: Rng, state: None
    ) -> Estimate[None]:
        gradients, terms = whole_gradient(
            module, batch, module.draw_noise(batch, self.n_samples, rng.noise)
        )
        return gradients, terms, None
