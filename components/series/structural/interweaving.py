"""A second draw of the standard deviations of states, given their noise in units of them, where the
first hardly moves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from components.contracts.structural import Scale
from components.maths.compiled import loops
from components.series.conditionals.exact_root import root
from components.series.fast import interweaving as compiled
from components.series.maths.simulation_smoother import StateLayout, driven, in_order


@dataclass(frozen=True)
class Interweaving:
    """α = α₀ + σ_j D, where D answers to the noise of scale j in units of σ_j; given D, y is linear
    in σ_j.

        s ~ N(b/a, 1/a),  a = Σ_t w_t h_t²,  b = Σ_t w_t h_t e_t,  h = F D,  w_t = λ_t/σ² where y is seen,

    e what all but σ_j D leaves of y; σ_j = |s| is taken with probability p(|s|)/p(σ_j) of the
    prior, and α = α₀ + s D with it.

    Source: Yu & Meng (2011), section 2; Frühwirth-Schnatter & Wagner (2010), section 3.1."""

    layout: StateLayout
    scales: tuple[Scale, ...]

    @cached_property
    def owner(self) -> tuple[int, ...]:
        """Index of the scale that owns the noise of each state [d]; 0: no owner."""
        owners = {i: j for j, scale in enumerate(self.scales) if j for i in scale.states}
        return tuple(owners.get(i, 0) for i in range(len(self.layout.mean)))

    @cached_property
    def prior(self) -> Tensor:
        """df, df guess² and upper [3, S]."""
        return self.layout.mean.new_tensor(
            [(s.df, s.df * s.guess**2, s.upper) for s in self.scales]
        ).T.contiguous()

    def numbers(self, chains: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Normal and uniform numbers [C, S] of a draw."""
        shape = (chains, len(self.scales))
        like = self.layout.mean
        z = torch.randn(shape, generator=generator, device=generator.device, dtype=like.dtype).to(
            like.device
        )
        return z, torch.rand(
            shape, generator=generator, device=generator.device, dtype=like.dtype
        ).to(like.device)

    def draw(
        self,
        G: Tensor,
        left: Tensor,
        weights: Tensor,
        sigma: Tensor,
        alpha: Tensor,
        z: Tensor,
        u: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Draw (σ [C, S], α [C, n, d]) given residuals [C, n] and weights w [C or 1, n].

        The residuals are y minus its columns, 0 at times without an observation.
        """
        if loops.serve(sigma):
            return compiled.draw(
                self.layout, G, self.owner, self.prior, left, weights, z, u, sigma, alpha
            )
        sigma = sigma.clone()
        values = self.layout.rows.numbers(G)
        for j in range(1, len(self.scales)):
            indices = [i for i, owner in enumerate(self.owner) if owner == j]
            now = sigma[:, j].clone()
            noise = alpha.new_zeros(len(alpha), alpha.shape[1] - 1, alpha.shape[2])
            moves = alpha[:, 1:] - self.layout.rows.times(values, alpha[:, :-1].mT).mT
            noise[..., indices] = moves[..., indices] / now[:, None, None]
            D = driven(self.layout, G, noise)
            h = in_order(self.layout.F * D)
            rest = left - in_order(self.layout.F * alpha) + now.unsqueeze(1) * h
            a = in_order(weights * h * h)
            b = in_order(weights * h * rest)
            s = b / a + z[:, j] * root(a).reciprocal()
            prior = self._log_prior(j, s.abs()) - self._log_prior(j, now)
            is_accepted = (s.abs() <= self.scales[j].upper) & ((1 - u[:, j]).log() < prior)
            sigma[:, j] = torch.where(is_accepted, s.abs(), now)
            alpha = torch.where(
                is_accepted[:, None, None], alpha + (s - now)[:, None, None] * D, alpha
            )
        return sigma, alpha

    def _log_prior(self, j: int, sigma: Tensor) -> Tensor:
        """log p(σ_j) up to a constant, 1/σ² ~ Gamma(df/2, df guess²/2)."""
        df, squares, _ = self.prior[:, j].tolist()
        return -(df + 1) * sigma.log() - squares / (2 * sigma * sigma)
