"""A draw of the columns that are in with the states summed out, where these could stand for
them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.maths.compiled import loops
from components.series.conditionals.exact_root import root
from components.series.conditionals.spike_slab import SlabRandomNumbers, SpikeSlab, draw_given
from components.series.fast import whitening as compiled
from components.series.maths.simulation_smoother import StateLayout, in_order


def whiten_columns(
    layout: StateLayout, beside: Tensor, G: Tensor, scale: Tensor, noise: Tensor
) -> Tensor:
    """Filter residuals (Y − F A)/√f of columns Y [C, n, q]; [C, n, q].

    The last column is y and has the states' mean; the other columns have mean zero.

        V = Y − F A,  f = F P Fᵀ + h,  K = P Fᵀ/f,
        A ← G(A + K V),  P ← G(P − K f Kᵀ)Gᵀ + W           t = 1 … n

    The result is 0 at unobserved times. The filter is linear: if y = Xβ + states + noise,
    the residual of y is the residual of X times β plus white noise, which gives p(y | β)
    with the states summed out. h = noise² [C, n], W = scale² [C, k] of the noisy states.

    Source: Durbin and Koopman (2012), section 6.2.3.
    """
    F = layout.F
    values = layout.rows.numbers(G)
    noisy = list(layout.noisy)
    C, n, q = beside.shape
    columns = (F != 0).any(0).nonzero().flatten().tolist()
    A = torch.cat(
        [layout.mean.new_zeros(len(layout.mean), q - 1), layout.mean.unsqueeze(1)], 1
    ).expand(C, -1, -1)
    P = (layout.sd * layout.sd).diag().expand(C, F.shape[1], F.shape[1])
    out = torch.zeros_like(beside)
    for t in range(n):
        if bool(layout.seen[t]):
            row = F[t, columns]
            V = beside[:, t] - in_order(A[:, columns].mT * row)  # [C, q]
            M = in_order(P[:, :, columns] * row)  # P Fᵀ [C, d]
            f = in_order(row * M[:, columns]) + noise[:, t] * noise[:, t]
            out[:, t] = V / root(f).unsqueeze(1)
            A = A + (M / f.unsqueeze(1)).unsqueeze(2) * V.unsqueeze(1)
            P = P - M.unsqueeze(2) * M.unsqueeze(1) / f[:, None, None]
        A = layout.rows.times(values, A)
        P = layout.rows.times(values, layout.rows.times(values, P).mT).tril()
        P = P + P.tril(-1).mT
        if noisy:
            P[:, noisy, noisy] = P[:, noisy, noisy] + scale * scale
    return out


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
