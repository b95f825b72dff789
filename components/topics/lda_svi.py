"""Stochastic variational inference for topics."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import TopicModel
from components.contracts.costs.counts import count
from components.contracts.problems import Counts
from components.contracts.requirements import Requirements
from components.contracts.roles import Info, ZeroToOne
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.registry import register
from components.topics.corpus import Corpus, Topics
from components.topics.maths.document_factors import Factors, fit_documents
from components.topics.starts import evenly, log_weights, sample_topics, topic_elbo
from components.topics.topic_posterior import TopicInference, mean_topics


@dataclass(kw_only=True)
class LdaSviState:
    """Parameters of the topics, and the number of steps."""

    model: TopicModel = not_checkpointed()
    lam: Tensor  # of q(B) [V, K]
    t: int = 0


@register("inference", "lda_svi")
class LdaSvi(TopicInference[LdaSviState]):
    """Stochastic variational inference for latent Dirichlet allocation: natural gradients from
    minibatches of documents.

        λ̂ = η + D/|S| Σ_{d ∈ S} n_dv φ_dvk,   λ ← λ + ρ_t (λ̂ − λ),   ρ_t = (t + τ)^{−κ}

    λ̂ − λ is the natural gradient of the ELBO, maximised over the factors of documents, and
    unbiased over minibatches.  These factors restart as in ``lda_cavi``, and are updated until the
    mean change of γ is below ``tolerance``, or ``updates`` times.  With ½ < κ ≤ 1 the steps satisfy
    the Robbins–Monro conditions; a step with all documents in a batch and κ = 0 is a pass of
    ``lda_cavi``.  λ [V, K].  Info: ``elbo``, estimated from the minibatch before the step, in nats;
    ``rho``.

    Source: Hoffman, Blei, Wang and Paisley (2013), section 3; Bardenet (2021), section 5.3
    (minibatches)."""

    requires = Requirements(batch_kind="minibatch")
    kappa: ZeroToOne
    tau: NonNegativeFloat
    updates: PositiveInt
    tolerance: PositiveFloat

    def init(self, model: TopicModel, problem: Corpus, rng: Rng) -> LdaSviState:
        return LdaSviState(model=model, lam=sample_topics(model, 1, rng.init)[0])

    def factors(self, model: TopicModel, lam: Tensor, batch: Counts) -> Factors:
        """Fit the factors of the documents in a batch to topics λ."""
        weights = log_weights(lam).exp()
        return fit_documents(
            batch.pairs, weights, model.alpha, evenly(model, batch), self.updates, self.tolerance
        )

    @torch.no_grad()
    def step(self, state: LdaSviState, batch: Counts, rng: Rng) -> tuple[LdaSviState, Info]:
        model = state.model
        lam = state.lam
        factors = self.factors(model, lam, batch)
        count(forwards=int(factors.passes.sum()))
        rho = (state.t + 1 + self.tau) ** -self.kappa
        aim = model.eta[:, None] + batch.scale * factors.stats  # λ̂
        info = {"elbo": topic_elbo(model, batch, factors, lam), "rho": rho}
        return replace(state, lam=lam + rho * (aim - lam), t=state.t + 1), info

    def posterior(self, state: LdaSviState) -> Topics:
        return Topics(mean_topics(state.lam.T)[None], state.model.alpha)
