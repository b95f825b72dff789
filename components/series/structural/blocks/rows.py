"""Rows of F, and columns, as functions of the covariates of a series."""

from __future__ import annotations

from collections.abc import Callable

import torch
from pydantic import PositiveFloat
from torch import Tensor

from components.contracts.roles import Block
from components.contracts.structural import Covariates, Facts, Scale
from components.errors import ConfigMismatchError

Rows = Callable[[Covariates], Tensor]


class NoiseBlock(Block):
    """Block of states with noise, with an unknown standard deviation for each state or for all."""

    guess: PositiveFloat
    df: PositiveFloat
    upper: PositiveFloat | None
    initial_sd: PositiveFloat

    def scales(self, facts: Facts, *names: str) -> tuple[Scale, ...]:
        """One standard deviation for each of the first states, in order."""
        return facts.noises(names, self.guess, self.df, self.upper)


def constant(row: Tensor) -> Rows:
    """The same row [d] at every time."""
    return lambda covariates: row.expand(len(covariates.y), -1)


def standardise_columns(facts: Facts, places: list[int], asked: bool) -> tuple[Rows, list[float]]:
    """Regressors, standardised over the observed times if requested, and the scale of each in units
    of its column: the standard deviation, or 1.

    Raises:
        ConfigMismatchError: a regressor is constant at these times."""
    assert facts.seen.x is not None
    x = facts.seen.x[:, places]
    mean = x.nanmean(0)
    sd = (x - mean).square().nanmean(0).sqrt()
    for place, spread in zip(places, sd.tolist(), strict=True):
        if not spread > 0:
            raise ConfigMismatchError(
                f"{facts.where}: {facts.x_names[place]} is constant over the observed times; remove it from columns"
            )
    if not asked:
        mean = torch.zeros_like(mean)
        sd = torch.ones_like(sd)

    def rows(covariates: Covariates) -> Tensor:
        assert covariates.x is not None
        return (covariates.x[:, places] - mean) / sd  # [n, p]

    return rows, sd.tolist()
