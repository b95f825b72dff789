"""Spike-and-slab priors: inclusion probabilities of columns and scale of their coefficients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from components.contracts.roles import Block, ZeroToOne
from components.contracts.structural import Covariates, Facts, Regressors
from components.errors import ConfigMismatchError


class SelectionBlock(Block):
    """Block of columns with spike and slab."""

    inclusion: dict[str, ZeroToOne]
    expected_size: NonNegativeFloat | None
    information: PositiveFloat
    shrinkage: ZeroToOne

    def select(
        self,
        facts: Facts,
        names: list[str],
        columns: Callable[[Covariates], Tensor],
        fades: tuple[int, int] | None = None,
        lag: int | None = None,
        limits: Sequence[float] = (),
    ) -> Regressors:
        """Columns of the block, with the spike and slab that its keys describe.

        Raises:
            ConfigMismatchError: as ``inclusion_probabilities`` and ``slab_precision`` do."""
        return Regressors(
            names=tuple(names),
            columns=columns,
            inclusion=self.inclusion_probabilities(facts, names),
            precision=self.slab_precision(facts, names, columns(facts.seen)),
            fades=fades,
            lag=lag,
            limits=limits,
        )

    def inclusion_probabilities(self, facts: Facts, names: list[str]) -> Tensor:
        """Inclusion probabilities π of the columns [p].

        They are given by name, and equal for the others so that the expected number of these is
        included (all if None).

        Raises:
            ConfigMismatchError: a name does not match a column, or the expected size exceeds the
                number of columns.

        Source: Gallego (2021), section 1.2.2.
        """
        for name in self.inclusion:
            if name not in names:
                raise ConfigMismatchError(
                    f"{facts.where}.inclusion.{name}: unknown column; the columns are {', '.join(names)}"
                )
        size = self.expected_size
        others = len(names) - len(self.inclusion)
        if size is not None and size > others > 0:
            raise ConfigMismatchError(
                f"{facts.where}.expected_size={size:g}: exceeds the {others} columns to choose "
                "from; lower it, or set it to null to include all"
            )
        each = 1.0 if size is None or others == 0 else size / others
        return facts.like.new_tensor([self.inclusion.get(name, each) for name in names])

    def slab_precision(self, facts: Facts, names: list[str], columns: Tensor) -> Tensor:
        """Ω = κ/n ((1 − w) XᵀX + w diag XᵀX) of columns [n, p]; times with missing values are left
        out.

        Raises:
            ConfigMismatchError: a column is 0 at all observed times.

        Source: Scott and Varian (2014)."""
        X = columns[~columns.isnan().any(1)]
        gram = X.mT @ X / max(len(X), 1)
        diagonal = gram.diagonal()
        if idle := [
            name for name, square in zip(names, diagonal.tolist(), strict=True) if not square > 0
        ]:
            raise ConfigMismatchError(
                f"{facts.where}: {idle[0]} is 0 at all observed times; remove it"
            )
        w = self.shrinkage
        return self.information * ((1 - w) * gram + w * torch.diag(diagonal))
