"""Posteriors of rows without labels: bounds on their likelihood, topics, a predictive."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

Shown = TypeVar("Shown", contravariant=True)  # the rows that a posterior reads


@runtime_checkable
class BoundsLikelihood(Protocol[Shown]):
    """log p(x) of each row, or bounds on it.

    With w_s the S values of a row, E[w_s] ≤ E[log S⁻¹ Σ_s exp w_s] ≤ log p(x): importance
    weights log p(x, z_s) − log q(z_s|x) where z is drawn.  If p(x) is known, S = 1 and nothing is
    drawn.  For counts and words, p is the probability of an ordered sequence of words, without a
    multinomial coefficient.
    """

    # [S, B] or [1, B]
    def row_log_weights(
        self, batch: Shown, n_samples: int, generator: torch.Generator
    ) -> Tensor: ...


@runtime_checkable
class HoldsTopics(Protocol):
    """Topics, which are distributions of words, and the prior of their proportions in a document.

    There are S sets of topics with equal mixture weights; topic numbers are not aligned between
    sets.
    """

    @property
    def topics(self) -> Tensor: ...  # E[B | …] [S, K, V], each sums to 1

    @property
    def alpha(self) -> Tensor: ...  # of the Dirichlet prior of a document's proportions [K]


@runtime_checkable
class PredictsRows(Protocol[Shown]):
    """A posterior predictive of rows without labels, with parameters integrated out."""

    def log_predictive(self, batch: Shown) -> Tensor: ...  # log p(x_b | training rows) [B]

    def clusters(self, batch: Shown) -> Tensor | None:
        """p(z_b = k | x_b) [B, K]; by default None, because there are no clusters."""
        return None
