"""Coordinates, any numbers, in which the parameters of a structural series are searched."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.structural import Design, Structure
from components.maths.series.stationary import coefficients_to_partial, partial_to_coefficients

SMALLEST_START = 0.05  # of a standard deviation where a search begins, in units of that of y


@dataclass(frozen=True)
class Coordinates:
    """z -> θ [1, P]: logarithms of σ, logits of φ within bounds, atanh of the partial
    autocorrelations of one that is to be stationary, β in units of sd(y) by the root mean square of
    its column; columns that are never in are left out."""

    structure: Structure
    units: Tensor  # of β [p]
    taken: Tensor  # columns that may be in [p] bool

    @classmethod
    def of(cls, structure: Structure, design: Design) -> Coordinates:
        is_observed = design.seen
        y = design.y[is_observed]
        size = design.X[is_observed].square().mean(0).sqrt()
        units = torch.where(size > 0, y.std() / size, 1.0)
        return cls(structure, units, structure.inclusion > 0)

    def start(self, design: Design, spread: Tensor) -> Tensor:
        """Starting point of a search; ``spread`` [S] shifts the logarithms of σ."""
        s = self.structure
        sd = float(design.y[design.seen].std())
        sigma = torch.full_like(spread, SMALLEST_START * sd)
        sigma[0] = 0.5 * sd
        parts = [sigma.log() + spread]
        for moves in s.transitions:
            phi = spread.new_tensor([moves.start])
            if moves.within is None:
                parts.append(coefficients_to_partial(phi).atanh().squeeze(0))
            else:
                low, high = moves.within
                parts.append(((phi - low) / (high - low)).logit().squeeze(0))
        return torch.cat([*parts, spread.new_zeros(int(self.taken.sum()))])

    def theta(self, z: Tensor) -> Tensor:
        s = self.structure
        start = len(self.structure.scales)
        parts = [z[:start].exp()]
        for moves in s.transitions:
            z_part = z[start : start + moves.count]
            if moves.within is None:
                parts.append(partial_to_coefficients(z_part.tanh().unsqueeze(0)).squeeze(0))
            else:
                low, high = moves.within
                parts.append(low + (high - low) * z_part.sigmoid())
            start += moves.count
        beta = z.new_zeros(len(s.column_names)).masked_scatter(self.taken, z[start:]) * self.units
        return torch.cat([*parts, beta]).unsqueeze(0)
