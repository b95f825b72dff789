"""The score-function gradient of the multi-sample bound."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.contracts.capabilities import RowGuide
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import AtLeastTwo
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate, StatelessGradient
from components.gradients.score.log_ratio import ascent, elbo, sample_guide
from components.registry import register


def leave_one_out_log_mean(log_w: Tensor) -> Tensor:
    """log S⁻¹ (Σ_{j≠s} w_j + ŵ_s), ŵ_s the geometric mean of the others, from log w [S, B] -> [S,
    B]."""
    S = len(log_w)
    others = (log_w.sum(0) - log_w) / (S - 1)  # log ŵ_s
    is_self = torch.eye(S, dtype=torch.bool, device=log_w.device).unsqueeze(-1)  # [S, S, 1]
    return torch.where(is_self, others, log_w).logsumexp(1) - math.log(S)


@register("gradient", "vimco")
class Vimco(StatelessGradient[RowGuide[RowBatch]]):
    """VIMCO: gradient of the multi-sample (importance-weighted) bound.

    Each draw is credited with its contribution given the others.

        L^S_b = log S⁻¹ Σ_s w_sb,   w = p(x, z) / q(z|x),   z_sb ~ q(z|x_b)
        ĝ = N/B Σ_b Σ_s [(L^S_b − L^{−s}_b) ∇ log q(z_sb|x_b)
                         + w_sb / (Σ_j w_jb) ∇ log w_sb]
        L^{−s}_b = log S⁻¹ (Σ_{j≠s} w_jb + (Π_{j≠s} w_jb)^{1/(S−1)})

    w [S, B].  Unbiased for the bound E[L^S] ≥ E[L¹] = ELBO, which tightens with S, and not for the
    ELBO.  Rows must have their own latent variables.  Terms: multi_sample_bound, and also elbo, of
    the whole data set in nats.  No state.

    Raises:
        ConfigError: there is only one draw.

    Source: Mnih and Rezende (2016).
    """

    requires = Requirements(capabilities={RowGuide})
    unbiased = True
    bound = "multi_sample_bound"

    n_samples: AtLeastTwo

    def estimate(
        self, module: RowGuide[RowBatch], batch: RowBatch, rng: Rng, state: None
    ) -> Estimate[None]:
        draws = sample_guide(module, batch, self.n_samples, rng.noise)
        bound = (draws.log_joint - draws.log_q).logsumexp(0) - math.log(self.n_samples)  # L^S_b [B]
        signal = bound.detach() - leave_one_out_log_mean(-draws.f)  # [S, B]
        gradients = ascent(module, batch, (signal * draws.log_q).sum(0) + bound)
        metrics = {"multi_sample_bound": batch.scale * bound.detach().sum()}
        return gradients, elbo(batch, draws.f) | metrics, None
