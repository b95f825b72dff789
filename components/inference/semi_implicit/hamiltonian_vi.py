"""Hamiltonian variational inference: a chain inside q, and a model of the reverse chain."""

from __future__ import annotations

import math

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities import LogJoint
from components.contracts.requirements import WHOLE_DATA
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import (
    INDEPENDENT_CHAINS,
    ModelBatch,
    SampleableProblem,
)
from components.inference.log_joint import log_joint
from components.inference.variational.ascent import ascend_value
from components.inference.variational.guide_fit import GuideState, SeededGuide
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal
from components.posteriors.variational import RefinedPosterior
from components.registry import register


class HamiltonianGuide(nn.Module):
    """q(z₀) = N(m, diag s²), T transitions with step sizes ε_t [T, P], and the backward models
    r_t(v | z) = N(A_t z + b_t, diag e^{2 c_t})."""

    def __init__(self, mean: Tensor, std: float, transitions: int, step_size: float):
        super().__init__()
        n = len(mean)
        self.mean = nn.Parameter(mean.clone())
        self.log_std = nn.Parameter(torch.full_like(mean, math.log(std)))
        self.log_eps = nn.Parameter(mean.new_full((transitions, n), math.log(step_size)))
        self.slopes = nn.Parameter(mean.new_zeros(transitions, n, n))  # A_t
        self.offsets = nn.Parameter(mean.new_zeros(transitions, n))  # b_t
        self.log_widths = nn.Parameter(mean.new_zeros(transitions, n))  # c_t

    def log_backward(self, t: int, v: Tensor, z: Tensor) -> Tensor:
        """log r_t(v | z) [S]."""
        mean = z @ self.slopes[t].T + self.offsets[t]
        return log_gaussian((v - mean) / self.log_widths[t].exp()) - self.log_widths[t].sum()


def log_gaussian(z: Tensor) -> Tensor:
    """log N(z | 0, I), [S, P] -> [S]."""
    return -0.5 * z.square().sum(1) - 0.5 * z.shape[1] * LOG_2PI


HamiltonianVIState = GuideState[HamiltonianGuide]


@register("inference", "hamiltonian_vi")
class HamiltonianVI(SeededGuide[HamiltonianVIState]):
    """Hamiltonian variational inference: Markov transitions inside q, with a backward model.

        z_0 ~ N(m, diag s²);   v'_t ~ N(0, I),  (z_t, v_t) = leapfrog(z_{t−1}, v'_t),  t = 1 … T
        L = E[log p(x, z_T) − log q(z_0) + Σ_t {log r_t(v_t | z_t) − log N(v'_t | 0, I)}]
        r_t(v | z) = N(A_t z + b_t, diag e^{2 c_t})

    z [S, P].  L is a lower bound on the evidence for every r; the gap to the bound of the marginal
    of z_T is the divergence of r from the distribution of (z_0, v_1 … v_{T−1}, v_T) given z_T.  A
    transition is ``leapfrog_steps`` volume-preserving steps without an accept step; step sizes for
    every coordinate and transition are learned, and gradients pass through the gradient of log p.
    For a Gaussian p, r is exact for T = 1.  Info: ``elbo`` in nats.  The posterior is two chains of
    draws z_T from fixed noise.

    Raises:
        NumericalError: the log joint is not finite at the initial q, or q becomes non-finite.

    Source: Salimans, Kingma and Welling (2015), sections 3 and 4.1, Algorithm 3; a baseline of
    Rodríguez Santana and Hernández-Lobato (2020), section 5.
    """

    requires = WHOLE_DATA

    transitions: PositiveInt
    leapfrog_steps: PositiveInt
    step_size: PositiveFloat

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> HamiltonianVIState:
        mean = self.find_mean(model, problem, rng)
        q = HamiltonianGuide(mean, self.initial_std, self.transitions, self.step_size)
        return self.begin(q, model, problem, rng)

    def leapfrog(
        self, model: LogJoint, batch: ModelBatch, z: Tensor, v: Tensor, eps: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(z, v) after the leapfrog steps with sizes ε [P]; gradients pass through ∇log p."""

        def slope(z: Tensor) -> Tensor:
            value = log_joint(model, z, batch).sum()
            return torch.autograd.grad(value, z, create_graph=True)[0]

        v = v + 0.5 * eps * slope(z)
        for step in range(self.leapfrog_steps):
            z = z + eps * v
            half = 0.5 if step == self.leapfrog_steps - 1 else 1.0
            v = v + half * eps * slope(z)
        return z, v

    def run(
        self, state: HamiltonianVIState, batch: ModelBatch, n: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """n draws z_T [n, P] and their terms of L [n]."""
        q = state.q
        noise = standard_normal((n, len(q.mean)), generator, q.mean)
        z = q.mean + q.log_std.exp() * noise
        value = q.log_std.sum() - log_gaussian(noise)
        for t in range(self.transitions):
            begin = standard_normal((n, len(q.mean)), generator, q.mean)
            z, v = self.leapfrog(state.model, batch, z, begin, q.log_eps[t].exp())
            value = value + q.log_backward(t, v, z) - log_gaussian(begin)
        return z, value + log_joint(state.model, z, batch)

    def step(
        self, state: HamiltonianVIState, batch: ModelBatch, rng: Rng
    ) -> tuple[HamiltonianVIState, Info]:
        elbo = self.run(state, batch, self.n_samples, rng.noise)[1].mean()
        norm = ascend_value(state.q, elbo, batch, state.optimizer)
        return state, {"elbo": elbo.detach(), "grad_norm": norm}

    def posterior(self, state: HamiltonianVIState) -> RefinedPosterior:
        generator = torch.Generator(state.q.mean.device).manual_seed(state.seed)
        with torch.enable_grad():
            z, bound = self.run(state, state.train, INDEPENDENT_CHAINS * self.draws, generator)
        start = state.q.mean.detach().expand(INDEPENDENT_CHAINS, -1)
        return self.to_posterior(state.model, z.detach(), start, bound.detach())
