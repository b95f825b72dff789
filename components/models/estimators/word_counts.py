"""Word counts of rows of tokens, and shared code of estimators based on them."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from components.contracts.problems import Batch
from components.errors import ConfigMismatchError
from components.models.text.tokens import check_vocabulary
from components.problems.supervised import Supervised

LEFT_OUT = 2  # tokens 0 (padding) and 1 (unknown word) are not counted


def problem_vocabulary_size(problem: Supervised, name: str) -> int:
    """V, the size of the vocabulary.

    Raises:
        ConfigMismatchError: the inputs are not tokens."""
    return check_vocabulary(problem, name) - LEFT_OUT


def select_labelled(batch: Batch, n_classes: int) -> Batch:
    """The rows with a label.

    Raises:
        ConfigMismatchError: a class has no rows."""
    rows = batch.part(batch.mask[:, 0], batch.scale)
    n_present = rows.y[:, 0].unique().numel()
    if n_present < n_classes:
        raise ConfigMismatchError(
            f"dataset.n_train: only {n_present} of {n_classes} classes occur in the training texts; raise it"
        )
    return rows


def sparse_counts(x: Tensor, n_words: int) -> csr_matrix:
    """Counts [B, V] of rows of tokens [B, L], for scikit-learn."""
    tokens = x.detach().cpu().numpy().astype(np.int64) - LEFT_OUT
    rows, places = np.nonzero(tokens >= 0)
    counts = csr_matrix((np.ones(len(rows)), (rows, tokens[rows, places])), shape=(len(x), n_words))
    counts.sum_duplicates()
    return counts


def to_word_counts(x: Tensor, n_words: int) -> Tensor:
    """Counts of rows of tokens as a tensor [B, V]."""
    tokens = x.long() - LEFT_OUT
    counts = x.new_zeros(len(x), n_words + 1)  # the last column takes uncounted words
    counts.scatter_add_(1, torch.where(tokens >= 0, tokens, n_words), torch.ones_like(x))
    return counts[:, :n_words]
