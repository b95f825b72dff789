"""The reparameterisation gradient without the score of q."""

from __future__ import annotations

import torch
from pydantic import PositiveInt

from components.contracts.capabilities import PathDerivative
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate, StatelessGradient
from components.registry import register


@register("gradient", "sticking_the_landing")
class StickingTheLanding(StatelessGradient[PathDerivative[RowBatch]]):
    """Path derivative: log q is differentiated only through the draws.

    The omitted term, the score of q, has mean 0.

        ĝ = N/B Σ_b S⁻¹ Σ_s ∇_φ [log p(x_b, z_φ(ε_s)) − log q_φ̄(z_φ(ε_s)|x_b)]
        φ̄ = φ without gradient

    [S, B] rows as in ``path_rows``.  If q is the posterior, ĝ of q is 0 at every draw; far from it
    the score may help, and the variance may exceed that of ``reparam``.
    Terms: elbo, with the draws' own log q, in nats.  No state.

    Source: Roeder, Wu and Duvenaud (2017), eq. (9) and Algorithm 2.
    """

    requires = Requirements(capabilities={PathDerivative})
    unbiased = True

    n_samples: PositiveInt

    def estimate(
        self, module: PathDerivative[RowBatch], batch: RowBatch, rng: Rng, state: None
    ) -> Estimate[None]:
        noise = module.draw_noise(batch, self.n_samples, rng.noise)
        elbo = batch.scale * module.path_rows(batch, noise).mean(0).sum()
        gradients = torch.autograd.grad(elbo, list(module.parameters()), allow_unused=True)
        return list(gradients), {"elbo": elbo.detach()}, None
