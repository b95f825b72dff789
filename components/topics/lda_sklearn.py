"""Topic model of scikit-learn."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import TopicModel
from components.contracts.costs.counts import count
from components.contracts.problems import Counts
from components.registry import register
from components.topics.maths.collapsed import document_offsets
from components.topics.topic_posterior import PackageTopics


@register("inference", "lda_sklearn")
class LdaSklearn(PackageTopics):
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

    passes: PositiveInt
    updates: PositiveInt
    tolerance: PositiveFloat

    def fit(self, model: TopicModel, documents: Counts, seed: int) -> Tensor:
        from scipy.sparse import csr_matrix
        from sklearn.decomposition import LatentDirichletAllocation  # slow to import

        table = csr_matrix(
            tuple(
                part.cpu().numpy()
                for part in (
                    documents.counts.double(),
                    documents.words,
                    document_offsets(documents.lengths),
                )
            ),
            shape=(documents.n_rows, len(model.eta)),
        )
        estimator = LatentDirichletAllocation(
            len(model.alpha),
            doc_topic_prior=float(model.alpha[0]),
            topic_word_prior=float(model.eta[0]),
            max_iter=self.passes,
            max_doc_update_iter=self.updates,
            mean_change_tol=self.tolerance,
            evaluate_every=-1,
            random_state=seed,
        ).fit(table)
        count(forwards=estimator.n_iter_ * documents.n_rows)
        return torch.from_numpy(estimator.components_)
