"""The importance-weighted auto-encoder."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from components.contracts.capabilities import LatentVariable
from components.contracts.problems import RowBatch
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.latent.draws import sample_latents
from components.inference.latent.improved import LatentTraining
from components.inference.variational.ascent import TrainingState, climb
from components.models.latent.generative import log_normal
from components.problems.unlabelled import Unlabelled
from components.registry import register

LatentTrainingState = TrainingState[LatentVariable[RowBatch]]
Way = Literal["reparam", "dreg"]


def weighed(
    module: LatentVariable[RowBatch],
    batch: RowBatch,
    n_samples: int,
    gradient: Way,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """log w [K, B], and a surrogate [] with the gradient of Σ_b L^K_b by the chosen estimator."""
    z, m, s = sample_latents(module, batch, n_samples, generator)
    if gradient == "reparam":
        log_w = module.log_joint(batch, z) - log_normal(z, m, s)
        return log_w, log_w.logsumexp(0).sum()
    # φ affects w only through z, and θ does not: the gradient through z_k is weighted once more.
    log_w = module.log_joint(batch, z) - log_normal(z, m.detach(), s.detach())
    share = log_w.detach().softmax(0)  # w̃ [K, B]
    z.register_hook(lambda slope: share[..., None] * slope)
    return log_w, (share * log_w).sum()


@register("inference", "iwae")
class IWAE(LatentTraining[LatentTrainingState]):
    """Importance-weighted auto-encoder: ascent of the K-sample importance bound on log p(x).

        L^K_b = E log K⁻¹ Σ_k w_bk,   w_bk = p(x_b, z_bk) / q(z_bk|x_b)
        z_bk = m(x_b) + s(x_b) ε_bk
        θ, φ ← + lr · Adam(∇ N/B Σ_b L̂^K_b / N)
        reparam   ∇ = Σ_k w̃_k ∇ log w_k,   w̃_k = w_k / Σ_j w_j
        dreg      of θ the same;  ∇_φ = Σ_k w̃_k² (∂ log w_k / ∂z_k) ∂z_k/∂φ,  log q fixed

    L^1 is the ELBO; L^K does not decrease with K and tends to log p(x) if weights are
    bounded.  Both gradients are unbiased for L^K; as K grows, the gradient of the guide loses its
    signal with reparam but not with dreg.  z [K, B, D], log w [K, B].  Info:
    ``multi_sample_bound_K`` (with the number K) and ``elbo``, the mean of log w, over the whole
    data set in nats; the norm of ∇ / N.

    Source: Burda, Grosse and Salakhutdinov (2016), eqs. (8), (13), (14); Tucker, Lawson, Gu
    and Maddison (2019), eq. (8).
    """

    gradient: Way

    def init(
        self, model: LatentVariable[RowBatch], problem: Unlabelled, rng: Rng
    ) -> LatentTrainingState:
        return TrainingState(model, self.build_optimizer(model.parameters()), None)

    def step(
        self, state: LatentTrainingState, batch: RowBatch, rng: Rng
    ) -> tuple[LatentTrainingState, Info]:
        K = self.n_samples
        parameters = list(state.module.parameters())
        log_w, objective = weighed(state.module, batch, K, self.gradient, rng.noise)
        gradients = torch.autograd.grad(batch.scale * objective, parameters, allow_unused=True)
        norm = climb(parameters, gradients, batch.scale * batch.n_rows, state.optimizer)
        with torch.no_grad():
            bound = batch.scale * (log_w.logsumexp(0) - math.log(K)).sum()
            elbo = batch.scale * log_w.mean(0).sum()
        return state, {f"multi_sample_bound_{K}": bound, "elbo": elbo, "grad_norm": norm}
