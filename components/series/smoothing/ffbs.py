"""Forward filtering, backward smoothing by reweighting."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from components.registry import register
from components.series.smoothing.particle_smoother import (
    FilteredParticles,
    ForwardParticles,
    ParticleSmoother,
)
from components.series.smoothing.transitions import backward_kernel, pairs


@register("inference", "ffbs")
class FFBS(ParticleSmoother):
    """Forward filtering, backward smoothing: the filter's particles reweighted from the last time
    to the first.

        w_{t|T}^i = Σ_j w_{t+1|T}^j w_t^i f(x_{t+1}^j | x_t^i) / Σ_l w_t^l f(x_{t+1}^j | x_t^l),     w_{T|T} = w_T

    for R replicates of N particles x [R, N, dx], O(N²) per time, in blocks that fit in cache.  With
    the weights of a β-filter it smooths the generalised posterior.  Raises NumericalError if no
    earlier particle can move to a later one.

    Source: Doucet, Godsill and Andrieu (2000), eqs. (50), (51); Boustati (2021), section 2.6."""

    def backwards(
        self, state: ForwardParticles, generator: torch.Generator
    ) -> Iterator[FilteredParticles]:
        x = state.x.rows
        log_w = state.log_w.rows
        w = log_w[-1].exp()
        yield FilteredParticles(len(x), x[-1], w)
        for t in range(len(x) - 1, 0, -1):  # x[t − 1] are the particles of time t
            weights = torch.zeros_like(w)
            for block in pairs(state.filter.model, x[t], x[t - 1], log_w[t - 1], t + 1):
                kernel = backward_kernel(block, t + 1)  # for each j, over all i
                later = w[block.replicates, block.later].unsqueeze(1)
                weights[block.replicates] += (later @ kernel).squeeze(1)
            w = weights / weights.sum(1, keepdim=True)
            yield FilteredParticles(t, x[t - 1], w)
