"""Naive Bayes for word counts."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat
from torch import Tensor, nn

from components.contracts.capabilities.estimators import Fitted
from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.models.estimators.word_counts import (
    problem_vocabulary_size,
    select_labelled,
    sparse_counts,
    to_word_counts,
)
from components.models.linear.design import check_one_task
from components.models.text.tokens import TextModel
from components.problems.supervised import Supervised
from components.registry import register


class CountsNaiveBayes(nn.Module):
    """Frequencies from scikit-learn, predictions as tensors."""

    def __init__(self, n_words: int, n_classes: int, smoothing: float, presence: bool):
        super().__init__()
        self.n_words = n_words
        self.n_classes = n_classes
        self.smoothing = smoothing
        self.presence = presence

    def fit(self, batch: Batch, seed: int) -> Fitted:
        """θ_cj = (n_cj + α)/(n_c + αV) and π_c = N_c/N."""
        from sklearn.naive_bayes import MultinomialNB  # slow to import

        batch = select_labelled(batch, self.n_classes)
        counts = sparse_counts(batch.x, self.n_words)
        if self.presence:
            counts.data[:] = 1.0
        fitted = MultinomialNB(alpha=self.smoothing).fit(counts, batch.y[:, 0].cpu().numpy())
        return {
            "log_theta": torch.from_numpy(fitted.feature_log_prob_).to(batch.x),  # [C, V]
            "log_class": torch.from_numpy(fitted.class_log_prior_).to(batch.x),  # [C]
        }

    def predict_fitted(self, fitted: Fitted, x: Tensor) -> Categorical:
        """log p(y = c|x) = log π_c + Σ_j n_j log θ_cj up to a constant."""
        n = to_word_counts(x, self.n_words)
        n = (n > 0).to(n) if self.presence else n
        return Categorical((fitted["log_class"] + n @ fitted["log_theta"].T)[None, :, None])


@register("model", "multinomial_naive_bayes")
class MultinomialNaiveBayes(Model[Supervised, CountsNaiveBayes]):
    """Multinomial naive Bayes: the words of a text are independent draws from the frequencies of
    its class.

        p(y = c|x) ∝ π_c Π_j θ_cj^{n_j},   θ_cj = (n_cj + α)/(n_c + αV),   π_c = N_c/N

    n_j is the count of word j in the text, or with ``presence`` its presence.  Order and unknown
    words are ignored.  It uses scikit-learn.  x [B, L] are tokens.

    Raises ConfigMismatchError for inputs that are not tokens, or several tasks.

    Source: McCallum and Nigam (1998); Pang, Lee and Vaithyanathan (2002), sections 5 and 6
    (reviews, presence)."""

    requires = TextModel.requires
    differentiable = False

    smoothing: PositiveFloat
    presence: bool

    def build(self, problem: Supervised, rng: Rng) -> CountsNaiveBayes:
        check_one_task(problem, self.name)
        return CountsNaiveBayes(
            problem_vocabulary_size(problem, self.name),
            problem.n_classes,
            self.smoothing,
            self.presence,
        )
