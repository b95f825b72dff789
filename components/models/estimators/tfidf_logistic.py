"""Logistic regression on tf-idf weighted words."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from components.contracts.capabilities.estimators import Fitted
from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.models.estimators.word_counts import (
    problem_vocabulary_size,
    select_labelled,
    sparse_counts,
    to_word_counts,
)
from components.models.linear.design import check_one_task
from components.problems.supervised import Supervised
from components.registry import register

MOST_STEPS = 1_000  # of L-BFGS


class TfidfRegression(nn.Module):
    """Weights and coefficients from scikit-learn, predictions as tensors."""

    def __init__(self, n_words: int, C: float, sublinear: bool):
        super().__init__()
        self.n_words = n_words
        self.C = C
        self.sublinear = sublinear

    def fit(self, batch: Batch, seed: int) -> Fitted:
        """idf_j = 1 + log((1 + N)/(1 + N_j)), N_j the number of texts with word j; then the
        coefficients."""
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.linear_model import LogisticRegression as Regression  # slow to import

        batch = select_labelled(batch, 2)
        counts = sparse_counts(batch.x, self.n_words)
        weigh = TfidfTransformer(sublinear_tf=self.sublinear)
        rows = weigh.fit_transform(counts)
        fitted = Regression(C=self.C, max_iter=MOST_STEPS).fit(rows, batch.y[:, 0].cpu().numpy())
        return {
            "idf": torch.from_numpy(weigh.idf_).to(batch.x),  # [V]
            "beta": torch.from_numpy(fitted.coef_[0]).to(batch.x),  # [V]
            "intercept": torch.from_numpy(fitted.intercept_).to(batch.x),  # [1]
        }

    def weighed(self, x: Tensor, idf: Tensor) -> Tensor:
        """z [B, V] of length 1, or 0 for rows without words."""
        n = to_word_counts(x, self.n_words)
        tf = torch.where(n > 0, 1 + n.clamp_min(1).log(), 0.0) if self.sublinear else n
        return nn.functional.normalize(tf * idf, dim=1)

    def predict_fitted(self, fitted: Fitted, x: Tensor) -> Categorical:
        """p(y = 1|x) = σ(β_0 + zᵀβ)."""
        f = self.weighed(x, fitted["idf"]) @ fitted["beta"] + fitted["intercept"]  # [B]
        return Categorical(torch.stack([torch.zeros_like(f), f], -1)[None, :, None])


@register("model", "tfidf_logistic")
class TfidfLogistic(Model[Supervised, TfidfRegression]):
    """Logistic regression on tf-idf: word counts weighted by inverse document frequency, with texts
    scaled to length 1.

        z_ij ∝ tf_ij (1 + log((1 + N)/(1 + N_j))),  ‖z_i‖ = 1,   tf = n, or 1 + log n for n > 0 (``sublinear``)
        β = argmin C Σ_i −log p(y_i|z_i, β) + ½ ‖β‖²,            the intercept without a penalty

    Order and unknown words are ignored.  It uses scikit-learn.  x [B, L] are tokens; labels are
    binary.

    Raises ConfigMismatchError for inputs that are not tokens, or several tasks.

    Source: Salton and Buckley (1988); Pang, Lee and Vaithyanathan (2002), section 5 (reviews by
    words)."""

    requires = Requirements(
        kinds={"supervised"},
        targets={"binary"},
        domains={"tokens"},
    )
    differentiable = False

    C: PositiveFloat
    sublinear: bool

    def build(self, problem: Supervised, rng: Rng) -> TfidfRegression:
        check_one_task(problem, self.name)
        return TfidfRegression(problem_vocabulary_size(problem, self.name), self.C, self.sublinear)
