"""A draw of the columns that are in with the states summed out, where these could stand for
them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.maths.compiled import loops
from components.maths.compiled import whitening as compiled
from components.maths.conditionals.spike_slab import SlabRandomNumbers, SpikeSlab, draw_given
from components.maths.series.simulation_smoother import StateLayout, in_order
from components.maths.series.whitening import whiten_columns


@dataclass(frozen=True)
class ColumnsFirst:
    """γ | σ, φ, λ, y with β and the states summed out, one γ_i after the other, then β | γ, σ, φ,
    λ, y with the states.

        ỹ = X̃ β + N(0, σ² I),   ỹ, X̃: σ times what the filter leaves of y and of X, in units of its standard deviation

    Given the states a column that is out stays out where a level or goodwill goes the way that it
    would; here it need not.

    Source: Liu (1994), of summing out; George and McCulloch (1997), section 4; Durbin and Koopman
    (2012), section 6.2.3."""

    slab: SpikeSlab
    layout: StateLayout

    def numbers(self, chains: int, generator: torch.Generator) -> SlabRandomNumbers:
        """Random numbers for one draw."""
        where = generator.device
        like = self.layout.mean
        p = len(self.slab.inclusion)
        u = torch.rand(chains, p + 1, generator=generator, device=where, dtype=like.dtype).to(
            like.device
        )
        z = torch.randn(chains, p, generator=generator, device=where, dtype=like.dtype).to(
            like.device
        )
        return SlabRandomNumbers(u[:, :p], u[:, p], u[:, :0], z)

    def draw(
        self,
        y: Tensor,
        X: Tensor,
        G: Tensor,
        scale: Tensor,
        noise: Tensor,
        sigma: Tensor,
        gamma: Tensor,
        numbers: SlabRandomNumbers,
    ) -> tuple[Tensor, Tensor]:
        """(γ, β) [C, p] of columns X [C, n, p], noise of states [C, k] and of observations [C, n];
        σ [C]."""
        columns = torch.cat([X, y.view(1, -1, 1).expand(len(X), -1, 1)], 2)
        if loops.serve(sigma):
            return compiled.draw(
                self.slab, self.layout, columns, G, scale, noise, sigma, gamma, numbers
            )
        white = whiten_columns(self.layout, columns, G, scale, noise).mT  # [C, p + 1, n]
        unit = sigma.square()[:, None, None]
        A = unit * in_order(white[:, :-1].unsqueeze(2) * white[:, :-1].unsqueeze(1))
        b = unit[..., 0] * in_order(white[:, :-1] * white[:, -1:])
        return draw_given(self.slab, A, b, sigma, gamma, numbers)
