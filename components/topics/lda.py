"""Latent Dirichlet allocation."""

from __future__ import annotations

from pydantic import PositiveFloat, PositiveInt

from components.contracts.capabilities import TopicModel
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.registry import register
from components.topics.corpus import Corpus


@register("model", "lda")
class LDA(Model[Corpus, TopicModel]):
    """Latent Dirichlet allocation: documents are mixtures of topics, and topics are distributions
    of words.

        B_k ~ Dir(η 1_V),   π_i ~ Dir(α 1_K),
        z_iℓ | π_i ~ Cat(π_i),   y_iℓ | z_iℓ ~ Cat(B_{z_iℓ})
        log p(y, z, π, B) = Σ_i [Σ_k (α − 1) log π_ik
                                 + Σ_ℓ (log π_{i z_iℓ} + log B_{z_iℓ y_iℓ})]
                            + Σ_kv (η − 1) log B_kv + const

    There are V words in the training documents and K topics; η is γ in the notes, where (5.6) omits
    both − 1, and a log before p(B|γ). With one topic, all documents share a distribution of words.

    Source: Bardenet (2021), section 5.2.1, eq. (5.6); Blei, Ng and Jordan (2003), section
    3.
    """

    requires = Requirements(kinds={"unlabelled"}, values={"count"})
    n_topics: PositiveInt
    alpha: PositiveFloat
    eta: PositiveFloat

    def build(self, problem: Corpus, rng: Rng) -> TopicModel:
        like = problem.like
        full = [
            like.new_full((n,), value)
            for n, value in ((self.n_topics, self.alpha), (problem.n_words, self.eta))
        ]
        return TopicModel(*full)
