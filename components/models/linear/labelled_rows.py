"""Labelled rows of a logistic regression: the log-likelihood and its gradient in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional as F

from components.maths.compiled.affine import affine

TOGETHER = 8  # factors for one logarithm


@dataclass(frozen=True)
class TwoClasses:
    """Rows ±x_b, with p(y_b | x_b) = σ(f_b) and f_b = ±x_bᵀβ; zero if the label is missing."""

    rows: Tensor  # [B, D]
    columns: Tensor  # their transpose [D, B]; products are faster with a contiguous copy
    missing: int

    @cached_property
    def total(self) -> Tensor:
        """Σ_b ±x_b, [D]."""
        return self.rows.sum(0)

    def score(
        self, theta: Tensor, others: Tensor, scale: float, value: bool
    ) -> tuple[Tensor, Tensor]:
        """Σ_b log σ(f_b) [K], empty without ``value``, and ``others`` [K, D] + scale Σ_b (1 −
        σ(f_b)) ±x_b.

        In the form Σ_b ±x_b − Σ_b σ(f_b) ±x_b the gradient needs only the [B, K] tensors of the
        value.  Logarithms are the most expensive part, so one is taken per product of ``TOGETHER``
        probabilities, or of each probability if a product underflows."""
        # [B, K]: both matrix products, and the product of probabilities, are fastest in this layout
        p = affine(self.rows, theta).sigmoid_()
        gradient = torch.add(others, self.total, alpha=scale).sub_(
            affine(self.columns, p.T).T, alpha=scale
        )
        if not value:
            return theta.new_zeros(0), gradient
        likelihood = log_product(p)
        if likelihood is None:
            likelihood = F.logsigmoid(affine(self.rows, theta)).sum(0)
        return likelihood + self.missing * math.log(2) if self.missing else likelihood, gradient


@dataclass(frozen=True)
class ManyClasses:
    """Rows x_b with labels of C classes; zero if the label is missing."""

    rows: Tensor  # [B, D]
    labels: Tensor  # [B], arbitrary if missing
    seen: Tensor | None  # [B]; None means all
    n_classes: int

    def score(
        self, theta: Tensor, others: Tensor, scale: float, value: bool
    ) -> tuple[Tensor, Tensor]:
        """Σ_b log p(y_b | x_b) [K], empty without ``value``, and
        ``others`` [K, C D] + scale Σ_b (1[y_b = c] − p(c | x_b)) x_b."""
        X = self.rows
        K = len(theta)
        C = self.n_classes
        f = affine(theta.reshape(K * C, -1), X).unflatten(0, (K, C))  # [K, C, B]
        labels = self.labels.expand(K, 1, -1)
        likelihood = theta.new_zeros(0)
        if value:
            likelihood = f.gather(1, labels)[:, 0] - f.logsumexp(1)
            likelihood = (
                likelihood if self.seen is None else torch.where(self.seen, likelihood, 0.0)
            ).sum(1)
        missing = torch.zeros_like(f).scatter_(1, labels, 1.0).sub_(f.softmax(1)).flatten(0, 1)
        pull = affine(X.T, missing).T.reshape(theta.shape)  # faster than missing @ X
        return likelihood, scale * pull + others


def log_product(p: Tensor) -> Tensor | None:
    """Σ_b log p_b; [B, K] -> [K].  None if a product underflows."""
    if not p.numel():
        return p.sum(0)  # no rows
    n_groups = len(p) // TOGETHER
    several = p[: TOGETHER * n_groups]
    rest = p[TOGETHER * n_groups :]
    logs = several.unflatten(0, (TOGETHER, n_groups)).prod(0)
    logs = (torch.cat([logs, rest]) if len(rest) else logs).log_()
    return None if float(logs.min()) <= math.log(torch.finfo(p.dtype).tiny) else logs.sum(0)
