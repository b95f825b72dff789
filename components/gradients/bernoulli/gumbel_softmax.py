"""The Gumbel-softmax gradient for binary variables."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.gradients.bernoulli.layers import logistic, uniform
from components.gradients.by_parameter import Estimate, StatelessGradient
from components.registry import register


@register("gradient", "gumbel_softmax")
class GumbelSoftmax(StatelessGradient[BernoulliLayers[RowBatch]]):
    """Gumbel-softmax: biased gradient of the bound through relaxed draws.

    The bias decreases with the temperature.

        ∇ S⁻¹ Σ_s f(z̄_s),   z̄_l = σ((α_l(z̄_{l−1}) + logit u_l) / λ)
        f = log p(x, z̄) − log q(z̄|x)

    All layers are relaxed simultaneously and each feeds the next; as λ → 0, z̄ becomes a draw from
    q and the variance grows without bound.  f [S, B], α [S, B, D].  Terms: elbo of the binary draws
    1[z̄_1 > ½], … from the same noise, layer by layer, for the whole data set in nats: the bound
    itself, not the differentiated objective.

    Source: Jang, Gu and Poole (2017); Maddison, Mnih and Teh (2017).
    """

    requires = Requirements(capabilities={BernoulliLayers})
    unbiased = False

    n_samples: PositiveInt
    temperature: PositiveFloat

    def estimate(
        self, module: BernoulliLayers[RowBatch], batch: RowBatch, rng: Rng, state: None
    ) -> Estimate[None]:
        relaxed: list[Tensor] = []
        binary: list[Tensor] = []
        for _ in range(module.n_layers):
            alpha = module.logits(batch, relaxed).expand(self.n_samples, -1, -1)
            noise = logistic(uniform(alpha.shape, alpha, rng))
            relaxed.append(((alpha + noise) / self.temperature).sigmoid())
            with torch.no_grad():
                binary.append((module.logits(batch, binary) + noise > 0).to(alpha))
        f = module.log_joint(batch, relaxed) - module.log_q(batch, relaxed)  # [S, B]
        gradients = torch.autograd.grad(
            batch.scale * f.mean(0).sum(), list(module.parameters()), allow_unused=True
        )
        with torch.no_grad():
            f = module.log_joint(batch, binary) - module.log_q(batch, binary)
        return list(gradients), {"elbo": batch.scale * f.mean(0).sum()}, None
