"""Variance reduction by a snapshot of the parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import Pathwise
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient, ZeroToBelowOne
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate, as_gradients, flat
from components.gradients.pathwise.bound import whole_gradient
from components.gradients.pathwise.snapshot import PassSnapshot, gather, gradient_at, init_snapshot
from components.registry import register


@dataclass
class SvrgState:
    """The snapshot, and moving averages of ĝ·v and v·v, v = ĝ(φ̃) − μ̃."""

    snapshot: PassSnapshot
    cross: Tensor  # []
    square: Tensor  # []


@register("gradient", "svrg")
class SVRG(Gradient[Pathwise[RowBatch], RowBatch, SvrgState]):
    """Stochastic variance-reduced gradient of a bound, for the noise of draws and of minibatches.

        g̃ = ĝ_B(φ, ε) − a (ĝ_B(φ̃, ε) − μ̃),   μ̃ = Σ_k B_k/N ĝ_{B_k}(φ̃, ε_k)

    φ̃ are the parameters one pass earlier; minibatch B and noise ε are the same in both gradients,
    so that both kinds of noise decrease while φ is near φ̃.  μ̃ is gathered during the pass, from
    S̃ = ``snapshot_samples`` draws for each row, without storing data.  a = 1 is Johnson and
    Zhang's; ``coefficient: learnt`` uses the ratio of moving averages of ĝ·v and v·v, v = ĝ_B(φ̃,
    ε) − μ̃, over earlier steps.  In the first pass g̃ = ĝ.  Unbiased over the draws in μ̃; given
    them the bias is a (μ̃ − ∇L(φ̃)), the noise of one estimate divided by S̃ N/B.  A step computes
    two gradients with S draws and one with S̃.

    Source: Johnson and Zhang (2013), section 2; Boustati (2021), section 4.8.
    """

    requires = Requirements(capabilities={Pathwise})
    unbiased = True

    n_samples: PositiveInt
    snapshot_samples: PositiveInt
    coefficient: Literal["learnt", "one"]
    decay: ZeroToBelowOne

    def init(self, module: Pathwise[RowBatch], rng: Rng) -> SvrgState:
        snapshot = init_snapshot(module)
        zero = snapshot.mean.new_zeros(())
        return SvrgState(snapshot, zero, zero.clone())

    def estimate(
        self, module: Pathwise[RowBatch], batch: RowBatch, rng: Rng, state: SvrgState
    ) -> Estimate[SvrgState]:
        noise = module.draw_noise(batch, self.n_samples, rng.noise)
        raw, terms = whole_gradient(module, batch, noise)
        snapshot = state.snapshot
        cross = state.cross
        square = state.square
        gradients = raw
        if snapshot.known:
            gradient = flat(raw, module.parameters())
            v = gradient_at(module, batch, noise, snapshot.phi) - snapshot.mean
            a = torch.ones_like(square)
            if self.coefficient == "learnt":
                a = torch.where(square > 0, cross / square, 0.0).nan_to_num()
            gradients = as_gradients(gradient - a * v, raw, module)
            # update after use: a must be independent of the noise that it corrects
            cross = torch.lerp(gradient @ v, cross, self.decay)
            square = torch.lerp(v @ v, square, self.decay)
        snapshot = gather(snapshot, module, batch, self.snapshot_samples, rng.noise)
        return gradients, terms, SvrgState(snapshot, cross, square)
