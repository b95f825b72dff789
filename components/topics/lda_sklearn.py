"""Topic model of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import TopicModel
from components.contracts.costs.counts import count
from components.contracts.problems import Counts
from components.contracts.roles import Info
from components.contracts.states import not_checkpointed, placed
from components.contracts.streams import Rng, seed_from
from components.registry import register
from components.topics.corpus import Corpus, Topics
from components.topics.maths.collapsed import document_offsets
from components.topics.topic_posterior import TopicInference, mean_topics


@dataclass(frozen=True, kw_only=True)
class LdaSklearnState:
    """Parameters of the topics from the library."""

    model: TopicModel = not_checkpointed()
    lam: Tensor | None = placed()  # of q(B) [K, V]


@register("inference", "lda_sklearn")
class LdaSklearn(TopicInference[LdaSklearnState]):
    """Mean-field topic model of scikit-learn, a reference for our own methods.

        γ_d = α + Σ_v n_dv φ_dv,   φ_dvk ∝ exp(E log π_dk + E log B_kv)
        λ_kv = η + Σ_d n_dv φ_dvk

    It uses scikit-learn's ``LatentDirichletAllocation``.  There is one start; document
    factors start as draws of Gamma(100, 1/100) in each of ``passes`` passes, and are
    updated until the mean change of γ is below ``tolerance``, or ``updates`` times.  All passes run
    in the first step; further steps have no effect.  It runs on the CPU, in double precision. λ [K,
    V].

    Source: Pedregosa et al. (2011); Hoffman, Blei and Bach (2010), algorithm 1 (batch).
    """

    max_useful_steps = 1
    passes: PositiveInt
    updates: PositiveInt
    tolerance: PositiveFloat

    def init(self, model: TopicModel, problem: Corpus, rng: Rng) -> LdaSklearnState:
        return LdaSklearnState(model=model)

    def step(self, state: LdaSklearnState, batch: Counts, rng: Rng) -> tuple[LdaSklearnState, Info]:
        if state.lam is not None:
            return state, {}
        from scipy.sparse import csr_matrix
        from sklearn.decomposition import LatentDirichletAllocation  # slow to import

        alpha = state.model.alpha
        eta = state.model.eta
        counts = csr_matrix(
            tuple(
                part.cpu().numpy()
                for part in (batch.counts.double(), batch.words, document_offsets(batch.lengths))
            ),
            shape=(batch.n_rows, len(eta)),
        )
        estimator = LatentDirichletAllocation(
            len(alpha),
            doc_topic_prior=float(alpha[0]),
            topic_word_prior=float(eta[0]),
            max_iter=self.passes,
            max_doc_update_iter=self.updates,
            mean_change_tol=self.tolerance,
            evaluate_every=-1,
            random_state=seed_from(rng.init),
        ).fit(counts)
        count(forwards=estimator.n_iter_ * batch.n_rows)
        return replace(state, lam=torch.from_numpy(estimator.components_).to(eta)), {}

    def posterior(self, state: LdaSklearnState) -> Topics:
        assert state.lam is not None
        return Topics(mean_topics(state.lam)[None], state.model.alpha)
