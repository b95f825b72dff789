"""Gradient of the log-variance loss under a fixed reference distribution."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from pydantic import PositiveInt

from components.contracts.capabilities import LogRatio
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import AtLeastTwo, Gradient
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate
from components.gradients.score.log_ratio import LatentSamples, ascent, elbo, sample_guide
from components.registry import register


@dataclass
class ReferenceGuide:
    """r, a copy of an earlier guide, and the number of estimates so far."""

    module: LogRatio[RowBatch]
    t: int


@register("gradient", "vargrad_reference")
class VarGradReference(Gradient[LogRatio[RowBatch], RowBatch, ReferenceGuide]):
    """Log-variance loss under a reference r, a copy of an earlier guide.

    The copy is the initial guide, or is updated every ``refresh`` estimates.

        ĝ_φ = −∇_φ N/B Σ_b (2 (S − 1))⁻¹ Σ_s (f_φ(z_sb) − f̄_b)²
        f_φ = log q_φ(z|x) − log p(x, z)
        ĝ_θ = N/B Σ_b S⁻¹ Σ_s ∇_θ log p_θ(x_b, z_sb),   z_sb ~ r(z|x_b)

    f [S, B].  For q it is the gradient of −L_r, a divergence other than KL unless r = q (``refresh:
    1`` is ``vargrad``), with the same optimum if the family of q contains the posterior; the
    generative model follows E_r[log p(x, z)].  It is therefore biased as a gradient of the bound.
    Terms: elbo, from S separate draws of q, and log_variance (L_r), of the whole data set.  State:
    r.

    Raises:
        ConfigError: there is only one draw.

    Source: Boustati (2021), eqs. (5.5), (5.6) and (5.9); Nüsken and Richter (2021).
    """

    requires = Requirements(capabilities={LogRatio})
    unbiased = False

    n_samples: AtLeastTwo
    refresh: PositiveInt | None

    def init(self, module: LogRatio[RowBatch], rng: Rng) -> ReferenceGuide:
        return ReferenceGuide(copy.deepcopy(module), 0)

    def estimate(
        self, module: LogRatio[RowBatch], batch: RowBatch, rng: Rng, state: ReferenceGuide
    ) -> Estimate[ReferenceGuide]:
        if self.refresh and state.t % self.refresh == 0:
            state.module.load_state_dict(module.state_dict())
        z = state.module.sample(batch, self.n_samples, rng.noise)
        draws = LatentSamples(module.log_q(batch, z), module.log_joint(batch, z), z)
        loss = 0.5 * (draws.log_q - draws.log_joint.detach()).var(0)  # [B]
        gradients = ascent(module, batch, draws.log_joint.mean(0) - loss)
        with torch.no_grad():
            terms = elbo(batch, sample_guide(module, batch, self.n_samples, rng.noise).f)
        terms["log_variance"] = batch.scale * loss.detach().sum()
        return gradients, terms, ReferenceGuide(state.module, state.t + 1)
