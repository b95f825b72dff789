"""Shared parts of networks that read tokens.

They are the positions of a row that hold a token, a word's vector, and the empty share
of a batch.
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
    """How many different tokens there are, 0 (none) among them.

    Raises:
        ConfigMismatchError: the inputs are no tokens."""
    if problem.vocabulary is None:
        raise ConfigMismatchError(
            f"model={name}: the inputs of {problem.name} are no tokens; choose dataset=reviews or dataset=imdb"
        )
    return problem.vocabulary


def read(x: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens [B, L'] as numbers, L' the longest of these rows, and which places hold one, bool [B,
    L'].

    Every row has one place at least: an empty row is read as a single token 0."""
    longest = max(1, int((x != 0).sum(1).max())) if len(x) else 1
    tokens = x[:, :longest].long()
    mask = tokens != 0
    mask[:, 0] = True
    return tokens, mask


def lengths(there: Tensor) -> Tensor:
    """How many tokens a row holds [B]."""
    return there.sum(1)


def mean_over_tokens(h: Tensor, there: Tensor) -> Tensor:
    """The mean of h [B, L, F] over the places that hold a token, [B, F]."""
    return torch.where(there[..., None], h, 0.0).sum(1) / lengths(there)[:, None]
