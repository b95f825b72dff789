"""Forward filtering, backward simulation of trajectories."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.maths.particles.backward_draws import distinct, inverse_cdf
from components.registry import register
from components.series.smoothing.particle_smoother import (
    FilteredParticles,
    ForwardParticles,
    ParticleSmoother,
)
from components.series.smoothing.transitions import backward_kernel, pairs


@register("inference", "ffbsi")
class FFBSi(ParticleSmoother):
    """Forward filtering, backward simulation: M trajectories drawn from the last time to the first.

        b_T ~ w_T,     P(b_t = i | b_{t+1}) ∝ w_t^i f(x_{t+1}^{b_{t+1}} | x_t^i),     x̃_t = x_t^{b_t}

    for R replicates [R, M, dx]; O(K N) per time, K the number of distinct x̃_{t+1} among the M.
    The thesis calls this FFBS.  With the weights of a β-filter it draws from the generalised
    posterior.  Raises NumericalError if no earlier particle can move to a later one.

    Source: Godsill, Doucet and West (2004), algorithm 1; Boustati (2021), section 6.5.4."""

    trajectories: PositiveInt

    def backwards(
        self, state: ForwardParticles, generator: torch.Generator
    ) -> Iterator[FilteredParticles]:
        x = state.x.rows
        log_w = state.log_w.rows
        r = x.shape[1]
        m = self.trajectories

        def uniforms() -> Tensor:
            return torch.rand(r, m, generator=generator, device=x.device, dtype=torch.float64)

        indices = inverse_cdf(
            log_w[-1].exp().unsqueeze(1), torch.zeros(r, m).to(x.device).long(), uniforms()
        )
        yield FilteredParticles(len(x), _rows(x[-1], indices), None)
        for t in range(len(x) - 1, 0, -1):  # x[t − 1] are the particles of time t
            # all equal particles share one row of the kernel
            different, place = distinct(indices, x.shape[2])
            u = uniforms()
            indices = torch.zeros_like(indices)
            for block in pairs(
                state.filter.model, _rows(x[t], different), x[t - 1], log_w[t - 1], t + 1
            ):
                kernel = backward_kernel(block, t + 1)
                these = block.replicates
                first = block.later.start
                size = kernel.shape[1]
                row = place[these] - first
                draws = inverse_cdf(kernel, row.clamp(0, size - 1), u[these])
                indices[these] = torch.where((row >= 0) & (row < size), draws, indices[these])
            yield FilteredParticles(t, _rows(x[t - 1], indices), None)


def _rows(x: Tensor, chosen: Tensor) -> Tensor:
    """Particles by index; [R, N, dx], [R, M] -> [R, M, dx]."""
    return x.gather(1, chosen.unsqueeze(2).expand(-1, -1, x.shape[2]))
