"""A second draw of the standard deviations of states, given their noise in units of them, where the first hardly moves."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.structural import Scale
from components.maths.compiled import loops
from components.maths.compiled import simulation_smoother as compiled
from components.maths.series.simulation_smoother import StateLayout, driven


@dataclass(frozen=True)
class Interweaving:
    """α = α₀ + σ_j D, where D answers to the noise of scale j in units of σ_j; given D, y is linear in σ_j.

        s ~ N(b/a, 1/a),  a = Σ_t w_t h_t²,  b = Σ_t w_t h_t e_t,  h = F D,  w_t = λ_t/σ² where y is seen,

    e what all but σ_j D leaves of y; σ_j = |s| is taken with probability p(|s|)/p(σ_j) of the prior, and α = α₀ + s D with it.

    Source: Yu & Meng (2011), section 2; Frühwirth-Schnatter & Wagner (2010), section 3.1."""

    layout: StateLayout
    scales: tuple[Scale, ...]

    def draw(
        self, G: Tensor, left: Tensor, weights: Tensor, sigma: Tensor, alpha: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """(σ [C, S], α [C, n, d]) of what columns leave of y [C, n], 0 where it is not seen, and weights w [C or 1, n]."""
        where, kind = generator.device, sigma.dtype
        z = torch.randn(sigma.shape, generator=generator, device=where, dtype=kind).to(sigma.device)
        u = torch.rand(sigma.shape, generator=generator, device=where, dtype=kind).to(sigma.device)
        answer = compiled.driven if loops.serve(sigma) else driven
        sigma = sigma.clone()
        for j, scale in enumerate(self.scales):
            if j == 0:
                continue
            own, now = list(scale.states), sigma[:, j]
            noise = alpha.new_zeros(len(alpha), alpha.shape[1] - 1, alpha.shape[2])
            moves = alpha[:, 1:] - alpha[:, :-1] @ G.mT
            noise[..., own] = moves[..., own] / now[:, None, None]
            D = answer(self.layout, G, noise)
            h = (self.layout.F * D).sum(2)
            rest = left - (self.layout.F * alpha).sum(2) + now.unsqueeze(1) * h
            a, b = (weights * h * h).sum(1), (weights * h * rest).sum(1)
            s = b / a + z[:, j] * a.rsqrt()
            taken = (s.abs() <= scale.upper) & (
                (1 - u[:, j]).log() < _log_prior(scale, s.abs()) - _log_prior(scale, now)
            )
            sigma[:, j] = torch.where(taken, s.abs(), now)
            alpha = torch.where(taken[:, None, None], alpha + (s - now)[:, None, None] * D, alpha)
        return sigma, alpha


def _log_prior(scale: Scale, sigma: Tensor) -> Tensor:
    """log p(σ) up to a constant, 1/σ² ~ Gamma(df/2, df guess²/2)."""
    return -(scale.df + 1) * sigma.log() - scale.df * scale.guess**2 / (2 * sigma * sigma)
