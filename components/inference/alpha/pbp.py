"""Probabilistic backpropagation of ReLU networks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.capabilities import AffineLayers
from components.contracts.costs.counts import count
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError, NumericalError
from components.inference.alpha.assumed_density import (
    Gamma,
    relu_moments,
    update_gamma,
    update_prior,
)
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import normal_like
from components.problems.supervised import Supervised
from components.registry import register

WIDEST = 1e6  # variance above which an update is skipped


@dataclass(kw_only=True)
class PBPState:
    """q(w) = N(m, diag v), q(γ), q(λ), and the sites of the prior factors of w and λ."""

    mean: Tensor  # m [P]
    variance: Tensor  # v [P]
    noise: Gamma  # q(γ)
    weight: Gamma  # q(λ)
    sites: Tensor  # precision, precision × mean, Δa, Δb of every prior factor [P, 4]
    network: AffineLayers = not_checkpointed()


@dataclass(frozen=True)
class PBPPosterior:
    """Gaussian predictive from moments propagated through the network."""

    state: PBPState

    def predict(self, x: Tensor, generator: torch.Generator) -> GaussianMixture:
        """N(m_L(x), v_L(x) + E[1/γ]) at x [B, D]."""
        mean, variance = propagate(self.state.network, self.state.mean, self.state.variance, x)
        noise = self.state.noise
        return GaussianMixture(mean[None], variance[None] + noise.b / (noise.a - 1))


def propagate(
    network: AffineLayers, mean: Tensor, variance: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    """Means and variances of the outputs [B, T] for weights N(m, diag v) and inputs x [B, D].

    A layer is a = W [z; 1]/√(V + 1), V the number of its inputs; ReLUs follow all but the
    last (Hernández-Lobato and Adams 2015, eqs. 12 to 15).
    """
    layers = list(zip(network.layers(mean), network.layers(variance), strict=True))
    z = x
    spread = torch.zeros_like(x)
    for index, ((W, b), (W_var, b_var)) in enumerate(layers):
        if index:
            z, spread = relu_moments(z, spread)
        n = W.shape[-1] + 1
        centre = (z @ W.T + b) / math.sqrt(n)
        square = spread @ W.square().T + z.square() @ W_var.T + spread @ W_var.T + b_var
        z = centre
        spread = square / n
    return z, spread


@register("inference", "pbp")
class PBP(Inference[AffineLayers, Supervised, Batch, PBPState]):
    """Probabilistic backpropagation (PBP): assumed density filtering of a ReLU network's weights.

        w ~ N(0, 1/λ),   y_n ~ N(f(x_n), 1/γ),   λ ~ Gamma(a, b),   γ ~ Gamma(a, b)
        Z = N(y_n | m_L, v_L + b_γ/(a_γ − 1))
        m ← m + v ∂log Z/∂m,   v ← v − v² {(∂log Z/∂m)² − 2 ∂log Z/∂v}

    q(w) = N(m, diag v) [P], q(γ) and q(λ) are Gammas.  (m_L, v_L) are moments propagated through
    the layers, with derivatives from one backward pass.  A step is one pass over all rows, one at a
    time in random order, and one pass of expectation propagation over the prior factors N(w | 0,
    1/λ).  Updates to a nonpositive variance are skipped.  The network's own prior, noise and
    activations are not used: ReLUs, and a layer divided by √(V + 1).  Info: ``log_likelihood``, Σ_n
    log Z before each update, and E[γ], E[λ].

    Raises:
        ConfigMismatchError: the activation is not a ReLU.
        NumericalError: m or v is not finite.

    Source: Hernández-Lobato and Adams (2015), sections 3.1 to 3.5, Algorithm of the
    supplement; a baseline of Rodríguez Santana and Hernández-Lobato (2020), section 5.
    """

    requires = Requirements(
        kinds={"supervised"},
        targets={"real"},
        batch_kind="whole",
        refused_traits={"several_tasks": "has one output"},
        capabilities={AffineLayers},
    )

    shape: Annotated[float, Field(gt=1)]
    rate: PositiveFloat

    def init(self, model: AffineLayers, problem: Supervised, rng: Rng) -> PBPState:
        self._check_relu(model, problem)
        zeros = torch.zeros_like(model.theta.detach())
        mean = normal_like(zeros, rng.init)
        scales = torch.ones_like(zeros)
        for W, b in model.layers(scales):
            for part in (W, b):
                part.div_(math.sqrt(W.shape[-1] + 1))
        variance = self.rate / (self.shape - 1)
        sites = zeros.new_zeros(len(zeros), 4)
        sites[:, 0] = 1 / variance
        prior = Gamma(self.shape, self.rate)
        return PBPState(
            mean=mean * scales,
            variance=zeros + variance,
            noise=prior,
            weight=prior,
            sites=sites,
            network=model,
        )

    def _check_relu(self, model: AffineLayers, problem: Supervised) -> None:
        """Raise ConfigMismatchError unless hidden units are max(0, a)."""
        shapes = [W.shape[0] for W, _ in model.layers(model.theta.detach())]
        values = problem.train.x.new_tensor([-1.0, 2.0])
        layer_inputs: list[Tensor] = []

        def affine(layer: int, h: Tensor) -> Tensor:
            layer_inputs.append(h)
            return values[:, None].expand(2, shapes[layer])

        model.propagate(problem.train.x[:2], affine)
        if any(not torch.equal(h[..., 0].flatten(), values.clamp_min(0)) for h in layer_inputs[1:]):
            raise ConfigMismatchError(
                f"inference={self.name}: propagates moments only through ReLUs; set "
                f"model.activation=relu model.dropout=0"
            )

    def step(self, state: PBPState, batch: Batch, rng: Rng) -> tuple[PBPState, Info]:
        order = torch.randperm(batch.n_rows, generator=rng.noise, device=rng.noise.device).tolist()
        total = 0.0
        for n in order:
            if bool(batch.mask[n, 0]):
                state, value = self.observe(state, batch.x[n : n + 1], float(batch.y[n, 0]))
                total += value
        state = self.refine(state)
        info = {"log_likelihood": total, "noise_precision": state.noise.mean}
        return state, info | {"weight_precision": state.weight.mean}

    def observe(self, state: PBPState, x: Tensor, y: float) -> tuple[PBPState, float]:
        """The state after one row x [1, D], and log Z before it."""
        mean = state.mean.detach().requires_grad_()
        variance = state.variance.detach().requires_grad_()
        noise = state.noise
        with torch.enable_grad():
            m, v = propagate(state.network, mean, variance, x)
            total = v + noise.b / (noise.a - 1)
            log_z = -0.5 * (LOG_2PI + total.log() + (y - m).square() / total).sum()
        by_mean, by_variance = torch.autograd.grad(log_z, [mean, variance])
        count(densities=1, gradients=1, forwards=1)
        if not math.isfinite(float(log_z.detach())):
            raise NumericalError(
                "the evidence of a row is not finite",
                "raise inference.shape or set dtype=float64",
            )
        with torch.no_grad():
            new_mean = mean + variance * by_mean
            new_variance = variance - variance.square() * (by_mean.square() - 2 * by_variance)
            is_proper = (new_variance > 0) & (new_variance < WIDEST) & torch.isfinite(new_mean)
            new_state = replace(
                state,
                mean=torch.where(is_proper, new_mean, mean).detach(),
                variance=torch.where(is_proper, new_variance, variance).detach(),
                noise=update_gamma(noise, y - float(m.detach()), float(v.detach())),
            )
        return new_state, float(log_z.detach())

    def refine(self, state: PBPState) -> PBPState:
        """The state after one pass of expectation propagation over the prior factors."""
        weight = state.weight
        rows = zip(state.mean.tolist(), state.variance.tolist(), state.sites.tolist(), strict=True)
        refined = []
        for mean, variance, site in rows:
            mean, variance, weight, site = update_prior(mean, variance, weight, site)
            refined.append([mean, variance, *site])
        table = state.mean.new_tensor(refined)
        return replace(
            state, mean=table[:, 0], variance=table[:, 1], weight=weight, sites=table[:, 2:]
        )

    def posterior(self, state: PBPState) -> PBPPosterior:
        return PBPPosterior(state)
