"""Initialisation of variational topics, and terms of their ELBO."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.capabilities import TopicModel
from components.contracts.problems import Counts
from components.topics.maths.document_factors import Factors

SHAPE = 100.0  # of the Gamma distribution with mean 1 of initial parameters of topics


def sample_topics(model: TopicModel, starts: int, generator: torch.Generator) -> Tensor:
    """Draw λ [R, V, K] ~ Gamma(100, 100): nearly uniform but distinct topics, as in
    scikit-learn."""
    V = len(model.eta)
    K = len(model.alpha)
    full = torch.full((starts, V, K), SHAPE, dtype=torch.float64)
    return (torch._standard_gamma(full, generator=generator) / SHAPE).to(model.eta)


def log_weights(lam: Tensor) -> Tensor:
    """Compute E log B_kv = ψ(λ_vk) − ψ(Σ_v λ_vk), λ [V, K] -> [V, K].

    Source: Bardenet (2021), Lemma 2."""
    return lam.digamma() - lam.sum(0).digamma()


def divergence(parameters: Tensor, prior: Tensor) -> Tensor:
    """Compute KL(Dir(a_n) ‖ Dir(b)) of each row, a [N, D], b [D] -> [N]."""
    total = parameters.sum(1)
    normaliser = (
        total.lgamma() - parameters.lgamma().sum(1) - prior.sum().lgamma() + prior.lgamma().sum()
    )
    mean_log = parameters.digamma() - total.digamma()[:, None]
    return normaliser + ((parameters - prior) * mean_log).sum(1)


def evenly(model: TopicModel, documents: Counts) -> Tensor:
    """Return the initial factors of documents γ_d = α + L_d/K [B, K]."""
    alpha = model.alpha
    return alpha + documents.totals[:, None].to(alpha.dtype) / len(alpha)


def topic_elbo(model: TopicModel, documents: Counts, factors: Factors, lam: Tensor) -> Tensor:
    """Compute the ELBO [] of q(π_d) = Dir(γ_d), q(B_k) = Dir(λ_·k) and the optimal q(z) given
    these.

        Σ_d (scale) [Σ_j n_dj log Σ_k exp(E log π_dk + E log B_kj) − KL(q(π_d) ‖ Dir(α))] − Σ_k KL(q(B_k) ‖ Dir(η))

    The logarithm of the sum is E log p plus the entropy of q(z), because φ_djk is proportional to
    the summands.

    Source: Bardenet (2021), section 5.2.1, eqs. (5.3), (5.6)."""
    n = documents.totals.to(lam.dtype)
    bounds = (
        factors.fit - n * factors.gamma.sum(1).digamma() - divergence(factors.gamma, model.alpha)
    )
    return documents.scale * bounds.sum() - divergence(lam.T, model.eta).sum()
