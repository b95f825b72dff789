"""How fast stocks fade, as goodwill does: what observations say of it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.maths.compiled import loops
from components.series.conditionals.slice_sampling import slice_sample
from components.series.conditionals.spike_slab import SpikeSlab, log_evidence
from components.series.fast import stocks as compiled
from components.series.maths.stocks import stocks


@dataclass(frozen=True)
class FadingRegression:
    """Regression e = X(φ) β + N(0, σ²/λ), in which some columns are stocks that fade with φ_q."""

    X: Tensor  # columns, for stocks the inflow [n, p]
    fades: Tensor  # index of the φ that a column fades with, −1: it is no stock [p]
    q: int
    phi: Tensor  # all φ [C, Q]
    left: Tensor  # e [C, n], 0 at times that are not seen
    weights: Tensor  # λ [C or 1, n], 0 at times that are not seen
    slab: SpikeSlab
    gamma: Tensor  # included columns [C, p]
    sigma: Tensor  # [C]

    def log_density(self, x: Tensor) -> Tensor:
        """log p(e | φ_q = x, γ, σ) [C] up to a constant, β summed out."""
        tried = torch.cat([self.phi[:, : self.q], x.unsqueeze(1), self.phi[:, self.q + 1 :]], 1)
        X = stocks(self.X, self.fades, tried)  # [C, n, p]
        weighed = self.weights.unsqueeze(2) * X
        return log_evidence(
            self.slab,
            X.mT @ weighed,
            (weighed.mT @ self.left.unsqueeze(2)).squeeze(2),
            self.gamma,
            self.sigma,
        )

    def draw(
        self,
        precision: Tensor,
        pull: Tensor,
        x: Tensor,
        low: float,
        high: float,
        generator: torch.Generator,
    ) -> Tensor:
        """φ_q [C] by slice sampling of that and of a normal with these natural parameters [C]."""
        if not loops.serve(x):
            return slice_sample(
                lambda x: self.log_density(x) + (pull - 0.5 * precision * x) * x,
                x,
                low,
                high,
                generator,
            )
        columns = stocks(self.X, self.fades, self.phi).mT
        arguments = (
            self.weights,
            self.left,
            self.slab.precision,
            self.gamma,
            self.sigma,
            precision,
            pull,
        )
        return compiled.slice_sample(
            columns, self.X.T, self.fades == self.q, *arguments, x, low, high, generator
        )
