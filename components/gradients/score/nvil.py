"""The score-function gradient with a baseline network that reads the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import RowGuide
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient, ZeroToBelowOne
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate
from components.gradients.learnt import Learnt
from components.gradients.score.log_ratio import ascent, elbo, sample_guide
from components.maths.optimizers import Adam
from components.models.latent.perceptron import Perceptron
from components.registry import register


@dataclass
class Baseline(Learnt[Perceptron]):
    """C_ψ: [B, C] -> [B, 1], with centre and scale of the signal, learned from the draws of earlier
    estimates."""

    mean: Tensor  # c []
    variance: Tensor  # v []


@register("gradient", "nvil")
class Nvil(Gradient[RowGuide[RowBatch], RowBatch, Baseline]):
    """NVIL: Reinforce with a learned baseline for each row, a running one for all, and a signal
    scaled to unit running variance.

        l_sb = (−f(z_sb) − C_ψ(x_b) − c) / max(1, v^½),   f = log q_φ(z|x) − log p_θ(x, z)
        ĝ_φ = N/B Σ_b S⁻¹ Σ_s l_sb ∇_φ log q_φ(z_sb|x_b),   ĝ_θ = N/B Σ_b S⁻¹ Σ_s ∇_θ log p_θ(x_b, z_sb),   z_sb ~ q_φ(z|x_b)
        then  c ← α c + (1 − α) mean(−f − C_ψ),   v ← α v + (1 − α) var(−f − C_ψ),   ψ ← ψ + Adam(mean l ∇_ψ C_ψ)

    f, l [S, B].  C_ψ, c and v are independent of the draw that they correct, because they are
    updated after it is used; the paper's listing updates c and v before.  With ``normalise`` the
    guide's gradient is scaled by 1/max(1, v^½), so that it is not marked unbiased; without it, its
    mean is the gradient of the bound.  Terms: elbo of the whole data set in nats, and baseline_mse,
    the mean square of −f − C_ψ − c.  State: C_ψ, its optimizer, c and v.

    Source: Mnih and Gregor (2014)."""

    requires = Requirements(capabilities={RowGuide})
    unbiased = False

    n_samples: PositiveInt
    widths: list[PositiveInt]
    lr: PositiveFloat
    decay: ZeroToBelowOne
    normalise: bool

    def init(self, module: RowGuide[RowBatch], rng: Rng) -> Baseline:
        like = next(iter(module.parameters()))
        network = Perceptron([module.context_dim, *self.widths, 1], "tanh", rng).to(like)
        return Baseline(
            network, Adam(network.parameters(), self.lr), like.new_zeros(()), like.new_zeros(())
        )

    def estimate(
        self, module: RowGuide[RowBatch], batch: RowBatch, rng: Rng, state: Baseline
    ) -> Estimate[Baseline]:
        draws = sample_guide(module, batch, self.n_samples, rng.noise)
        predicted = state.control(module.context(batch).detach()).squeeze(-1)  # C_ψ(x_b) [B]
        residual = -draws.f - predicted.detach()  # [S, B]
        scale = (
            state.variance.sqrt().clamp_min(1)
            if self.normalise
            else torch.ones_like(state.variance)
        )
        signal = (residual - state.mean) / scale
        gradients = ascent(module, batch, (draws.log_joint + signal * draws.log_q).mean(0))
        terms = elbo(batch, draws.f) | {"baseline_mse": (residual - state.mean).square().mean()}
        return gradients, terms, self._update_baseline(state, predicted, residual, signal)

    def _update_baseline(
        self, state: Baseline, predicted: Tensor, residual: Tensor, signal: Tensor
    ) -> Baseline:
        """Update the baselines with draws that have been used."""
        state.optimizer.descend(-(signal.mean(0) * predicted).mean())
        mean = torch.lerp(residual.mean(), state.mean, self.decay)
        variance = torch.lerp(residual.var(correction=0), state.variance, self.decay)
        return replace(state, mean=mean, variance=variance)
