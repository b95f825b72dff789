"""Spike and slab: which columns are in, and how far their coefficients may lie from 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from components.contracts.roles import Block, ZeroToOne
from components.contracts.structural import Covariates, Facts, Regressors
from components.errors import ConfigMismatchError


class SelectionPrior(NamedTuple):
    """Prior of columns that are included or excluded, as the keys of a block describe it."""

    inclusion: dict[str, float]
    expected_size: float | None
    information: float
    shrinkage: float


class SelectionBlock(Block):
    """Block of columns with spike and slab."""

    inclusion: dict[str, ZeroToOne]
    expected_size: NonNegativeFloat | None
    information: PositiveFloat
    shrinkage: ZeroToOne

    def prior(self) -> SelectionPrior:
        return SelectionPrior(self.inclusion, self.expected_size, self.information, self.shrinkage)


def select_columns(
    prior: SelectionPrior,
    facts: Facts,
    names: list[str],
    columns: Callable[[Covariates], Tensor],
    fades: tuple[int, int] | None = None,
    lag: int | None = None,
) -> Regressors:
    """Columns of a block, with the spike and slab that its keys describe.

    Raises:
        ConfigMismatchError: as ``inclusion`` and ``slab_precision`` do."""
    return Regressors(
        names=tuple(names),
        columns=columns,
        inclusion=inclusion(facts, names, prior.inclusion, prior.expected_size),
        precision=slab_precision(
            facts, names, columns(facts.seen), prior.information, prior.shrinkage
        ),
        fades=fades,
        lag=lag,
    )


def inclusion(
    facts: Facts, names: list[str], given: Mapping[str, float], expected_size: float | None
) -> Tensor:
    """Inclusion probabilities π of the columns [p].

    They are as given by name, and equal for the others, so that the expected number of
    these is included (None: all).

    Raises:
        ConfigMismatchError: a name matches no column, or more columns are expected than there are.

    Source: Gallego (2021), section 1.2.2.
    """
    for name in given:
        if name not in names:
            raise ConfigMismatchError(
                f"{facts.where}.inclusion.{name}: no such column; there are {', '.join(names)}"
            )
    others = len(names) - len(given)
    if expected_size is not None and expected_size > others > 0:
        raise ConfigMismatchError(
            f"{facts.where}.expected_size={expected_size:g}: there are {others} columns to choose from; expect fewer, or null: "
            "all are in"
        )
    each = 1.0 if expected_size is None or others == 0 else expected_size / others
    return facts.like.new_tensor([given.get(name, each) for name in names])


def slab_precision(
    facts: Facts, names: list[str], columns: Tensor, information: float, shrinkage: float
) -> Tensor:
    """Ω = κ/n ((1 − w) XᵀX + w diag XᵀX) of columns [n, p]; times with an unknown number are left
    out.

    Raises:
        ConfigMismatchError: a column is 0 at all times that are seen.

    Source: Scott and Varian (2014)."""
    X = columns[~columns.isnan().any(1)]
    gram = X.mT @ X / max(len(X), 1)
    if idle := [
        name for name, square in zip(names, gram.diagonal().tolist(), strict=True) if not square > 0
    ]:
        raise ConfigMismatchError(
            f"{facts.where}: {idle[0]} is 0 at all times that are seen; leave it out"
        )
    return information * ((1 - shrinkage) * gram + shrinkage * torch.diag(gram.diagonal()))
