"""The score-function gradient of black-box variational inference, Rao–Blackwellised by coordinate,
with control variates."""

from __future__ import annotations

import torch
from pydantic import PositiveInt, model_validator

from components.contracts.capabilities import FactoredGuide
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate, StatelessGradient
from components.gradients.score.log_ratio import require_two_draws
from components.registry import register


@register("gradient", "rao_blackwell")
class RaoBlackwell(StatelessGradient[FactoredGuide[RowBatch]]):
    """Score-function gradient of a factorised q(θ): each factor's score, weighted by the terms that
    contain its θ_i.

        ĝ_i = S⁻¹ Σ_s h_si (log p_i(x, θ_s) − log q_i(θ_si) − a_si),   h_si = ∇_φi log q_i(θ_si),   θ_s ~ q = Π_i q_i
        a_si = Σ_{r≠s} Σ_φi h_ri² (log p_i − log q_i)_r / Σ_{r≠s} Σ_φi h_ri²

    The terms of log p(x, θ) − log q(θ) without θ_i have mean 0 when multiplied by h_i, and are
    omitted: the log q_j of all other factors, and their priors if these are known to be
    independent; the likelihood of every row stays.  a_i is one coefficient for all parameters φ_i
    of a factor.  The paper computes it from the draws that it corrects, with a bias O(1/S); here it
    comes from the other draws (``control``), without bias.  Rows of a minibatch have weight N/B.
    Terms: elbo of the whole data set in nats.

    Source: Ranganath, Gerrish and Blei (2014), eqs. (5) to (9), Algorithm 2; Bardenet (2021),
    section 5.3."""

    requires = Requirements(capabilities={FactoredGuide})
    unbiased = True

    n_samples: PositiveInt
    control: bool

    @model_validator(mode="after")
    def _check_other_draws(self) -> RaoBlackwell:
        if self.control:
            require_two_draws(
                self.n_samples, "control=true", "computes a draw's coefficient from the others"
            )
        return self

    def estimate(
        self, module: FactoredGuide[RowBatch], batch: RowBatch, rng: Rng, state: None
    ) -> Estimate[None]:
        theta = module.draw_theta(self.n_samples, rng.noise)  # [S, P]
        with torch.no_grad():
            log_joint, log_joint_each = module.log_joint_each(batch, theta)
        log_q = module.log_q_each(theta)
        f = log_joint_each - log_q.detach()  # [S, P]
        each = torch.eye(len(theta), dtype=theta.dtype, device=theta.device)
        scores = torch.autograd.grad(
            log_q.sum(1), list(module.parameters()), each, is_grads_batched=True
        )
        h = torch.stack(scores)  # for each parameter of a factor [F, S, P]
        if self.control:
            square = h.square().sum(0)
            product = square * f
            others = square.sum(0) - square
            a = (product.sum(0) - product) / others.clamp_min(torch.finfo(f.dtype).tiny)
            f = f - torch.where(others > 0, a, 0.0)
        return list((h * f).mean(1)), {"elbo": (log_joint - log_q.detach().sum(1)).mean()}, None
