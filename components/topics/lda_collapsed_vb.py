"""Collapsed variational Bayes for topics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from components.contracts.capabilities import TopicModel
from components.contracts.costs.counts import count
from components.contracts.problems import Counts
from components.contracts.roles import Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.registry import register
from components.topics.corpus import Corpus, Topics
from components.topics.maths.collapsed import sum_by_word, update_responsibilities
from components.topics.topic_posterior import TopicInference


@dataclass(kw_only=True)
class Sharing:
    """φ of all pairs (document, word)."""

    model: TopicModel = not_checkpointed()
    documents: Counts = not_checkpointed()  # on the CPU
    phi: Tensor  # [M, K] float64


@register("inference", "lda_collapsed_vb")
class LdaCollapsedVb(TopicInference[Sharing]):
    """Collapsed variational Bayes for latent Dirichlet allocation: q(z) only, with π and B
    integrated out; a step is one pass.

        φ_djk ∝ (α_k + E n_dk)(η_j + E n_jk) / (Σ η + E n_k)
                · exp(V n_k / 2(Σ η + E n_k)² − V n_dk / 2(α_k + E n_dk)² − V n_jk / 2(η_j + E n_jk)²)

    E and V are moments under q of counts without one word of the pair. ``order`` 2 is CVB, a
    second-order expansion of E log; 0 is CVB0, without the exponential. Neither has a computed
    bound. φ starts at draws of Dir(1); equal words in a document share φ. Topics are (η_v + E n_vk)
    / (Σ η + E n_k). The passes are compiled and run on the CPU. φ [M, K], M pairs. Info:
    ``change``, mean total variation between successive φ.

    Source: Bardenet (2021), section 5.2.2 (an exercise); Teh, Newman and Welling (2007) (CVB);
    Asuncion, Welling, Smyth and Teh (2009) (CVB0)."""

    order: Literal[0, 2]

    def init(self, model: TopicModel, problem: Corpus, rng: Rng) -> Sharing:
        documents = problem.train.to(torch.device("cpu"))
        shape = len(documents.words), len(model.alpha)
        phi = torch.empty(shape, dtype=torch.float64).exponential_(generator=rng.init)
        return Sharing(model=model, documents=documents, phi=phi / phi.sum(1, keepdim=True))

    def step(self, state: Sharing, batch: Counts, rng: Rng) -> tuple[Sharing, Info]:
        alpha = state.model.alpha.cpu()
        eta = state.model.eta.cpu()
        phi = update_responsibilities(state.documents.pairs, state.phi, alpha, eta, self.order == 2)
        count(forwards=batch.n_rows)
        change = 0.5 * (phi - state.phi).abs().sum(1)
        return replace(state, phi=phi), {"change": change.mean() if len(change) else 0.0}

    def posterior(self, state: Sharing) -> Topics:
        alpha = state.model.alpha
        eta = state.model.eta
        counts = state.documents.counts[:, None] * state.phi
        lam = sum_by_word(state.documents.words, counts, len(eta)).to(eta) + eta[:, None]
        return Topics((lam / lam.sum(0)).T[None], alpha)
