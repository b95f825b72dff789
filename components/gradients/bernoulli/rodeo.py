"""RODEO: leave-one-out with control variates from a discrete Stein operator."""

from __future__ import annotations

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import RowBatch
from components.contracts.streams import Rng
from components.gradients.bernoulli.learning import silent
from components.gradients.bernoulli.leave_one_out import (
    DrawsWithSlope,
    LeaveOneOut,
    leave_one_out_mean,
)
from components.gradients.learnt import Learnt
from components.registry import register

KEPT = 0.99  # rate of the running scale of f
FEWEST = 1e-8  # lower bound of the scale of f


class SteinSurrogates(nn.Module):
    """H_l: (f(z^j), ∂f/∂z_l(z^j)ᵀ (y − z_l^j)) -> two surrogates of f(y): a network and a multiple
    of the second.

    Arguments and result are in units of the running scale of f, the root mean square around the
    mean."""

    mean: Tensor
    variance: Tensor

    def __init__(self, layers: int, widths: list[int], coefficient: float, like: Tensor, rng: Rng):
        super().__init__()
        self.networks = nn.ModuleList(silent([2, *widths, 2], "relu", rng) for _ in range(layers))
        self.coefficient = nn.Parameter(torch.full((layers, 2), coefficient))
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("variance", torch.ones(()))
        self.to(like)

    def forward(self, at: int, f: Tensor, rise: Tensor) -> Tensor:
        """H_l [..., 2] of f and ∂fᵀ (y − z) [...]."""
        size = self.variance.sqrt()
        inside = torch.stack([((f - self.mean) / size).expand_as(rise), rise / size], -1)
        learnt: Tensor = self.networks[at](inside)
        return self.coefficient[at] * rise[..., None] + size * learnt


@register("gradient", "rodeo")
class RODEO(LeaveOneOut[SteinSurrogates]):
    """RODEO: surrogates of f from the other draws, centred under q by a Stein operator.

        ∂/∂α_l E f = E[S⁻¹ Σ_s (f(z^s) − (S − 1)⁻¹ Σ_{j≠s} b_j) (z_l^s − μ_l^s)
                       + (A_l h̃_l^s)(z_l^s)]
        b_j = f(z^j) + Σ_l (A_l h_l^j)(z_l^j)
        (A_l h)(z) = Σ_d q(z̄_d) (h(z_1, …, z̄_d, …) − h(z)),   z̄_d = 1 − z_d
        E_q A_l h = 0
        (h_l^s, g_l^s)(y) = (S − 1)⁻¹ Σ_{j≠s} H_l(f(z^j), ∂f/∂z_l(z^j)ᵀ (y − z_l^j))
        h̃_l^s(y) = g_l^s(y) (y − μ_l^s)

    A is the generator of Gibbs sampling (the Stein operator of its kernel, times D).  H_l is a
    multiple of its second argument plus a network, initially 0; it minimises E[(∂/∂α)²] by Adam,
    after it has been used (it is fixed if ``lr`` is 0).  Draws below l and the other draws s are
    independent of z_l^s, so the added terms have mean 0.  Flips cost evaluations of H, but not of
    f.  f [S, B], α, z [S, B, D_l], the arguments of H [S, S − 1, B, D_l].
    Terms: elbo, of the whole data set in nats.  State: H with the running mean and variance
    of f, and its optimizer.

    Raises:
        ConfigError: there is only one draw.

    Source: Shi, Zhou, Hwang, Titsias and Mackey (2022); for layers, each given the one
    below, our derivation.
    """

    widths: list[PositiveInt]
    coefficient: float

    def init(self, module: BernoulliLayers[RowBatch], rng: Rng) -> Learnt[SteinSurrogates]:
        like = next(iter(module.parameters()))
        return Learnt.begin(
            SteinSurrogates(module.n_layers, self.widths, self.coefficient, like, rng), self.lr
        )

    def by_alpha(self, control: SteinSurrogates, draws: DrawsWithSlope) -> list[Tensor]:
        baseline = draws.f
        corrections = []
        for index in range(len(draws.z)):
            scalar, vector = self._stein(control, draws, index)
            baseline = baseline + scalar
            corrections.append(vector)
        signal = (draws.f - leave_one_out_mean(baseline))[..., None]
        centred = [z - mu for z, mu in zip(draws.z, draws.probability, strict=True)]
        return [
            signal * layer + correction
            for layer, correction in zip(centred, corrections, strict=True)
        ]

    def _stein(
        self, control: SteinSurrogates, draws: DrawsWithSlope, at: int
    ) -> tuple[Tensor, Tensor]:
        """A_l h_l^s [S, B] and A_l h̃_l^s [S, B, D_l] at z_l^s."""
        z = draws.z[at]
        mu = draws.probability[at]
        S = self.n_samples
        # [S, S − 1]
        others = torch.tensor([[j for j in range(S) if j != s] for s in range(S)], device=z.device)
        slope = draws.slope[at][others]
        f = draws.f[others]  # [S, S − 1, B, …]
        rise = (slope * (z[:, None] - z[others])).sum(-1)  # to z^s
        step = 1 - 2 * z  # z̄ − z
        h_and_g = control(at, f, rise).mean(1)  # [S, B, 2]
        # [S, B, D, 2]
        flipped = control(at, f[..., None], rise[..., None] + slope * step[:, None]).mean(1)
        rate = torch.where(z > 0, 1 - mu, mu)  # q(z̄_d)
        by_flip = rate[..., None] * (flipped - h_and_g[..., None, :])
        vector = by_flip[..., 1].sum(-1, keepdim=True) * (z - mu) + rate * flipped[..., 1] * step
        return by_flip[..., 0].sum(-1), vector

    @torch.no_grad()
    def observe_draws(self, control: SteinSurrogates, draws: DrawsWithSlope) -> None:
        control.variance.lerp_((draws.f - control.mean).square().mean().clamp_min(FEWEST), 1 - KEPT)
        control.mean.lerp_(draws.f.mean(), 1 - KEPT)
