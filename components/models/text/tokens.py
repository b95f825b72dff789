"""Shared code of networks for tokens: the classifier base class, vocabulary checks, and masks of
padding.
"""

from __future__ import annotations

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.requirements import Requirements
from components.errors import ConfigMismatchError
from components.models.networks.feed_forward import DropoutModel
from components.problems.supervised import Supervised


class TextModel(DropoutModel):
    """Classifier of rows of tokens."""

    requires = Requirements(
        kinds={"supervised"},
        targets={"binary", "classes"},
        domains={"tokens"},
    )
    differentiable = False

    prior_std: PositiveFloat


def check_vocabulary(problem: Supervised, name: str) -> int:
    """Number of distinct tokens, including 0 (padding).

    Raises:
        ConfigMismatchError: the inputs are not tokens."""
    if problem.vocabulary is None:
        raise ConfigMismatchError(
            f"model={name}: the inputs of {problem.name} are not tokens; choose dataset=reviews or dataset=imdb"
        )
    return problem.vocabulary


def read(x: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens [B, L'] as integers, L' the length of the longest row, and the mask of tokens, bool
    [B, L'].

    Every row has at least one position: an empty row is read as a single token 0."""
    longest = max(1, int((x != 0).sum(1).max())) if len(x) else 1
    tokens = x[:, :longest].long()
    mask = tokens != 0
    mask[:, 0] = True
    return tokens, mask


def lengths(there: Tensor) -> Tensor:
    """Number of tokens per row [B]."""
    return there.sum(1)


def mean_over_tokens(h: Tensor, there: Tensor) -> Tensor:
    """The mean of h [B, L, F] over the positions with a token, [B, F]."""
    return torch.where(there[..., None], h, 0.0).sum(1) / lengths(there)[:, None]
