"""Doubly stochastic variational inference: minibatches and Monte-Carlo samples of the latent
features."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import Elbo, NoiseParameters, VariationalLayers
from components.contracts.capabilities.variational import VariationalLayer
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import AboveZeroToOne, Inference, Info, ZeroToBelowOne
from components.contracts.streams import Rng
from components.errors import NumericalError
from components.maths.cholesky import triangular_inverse
from components.maths.optimizers import Adam
from components.posteriors.variational import VariationalPosterior
from components.problems.supervised import Supervised
from components.registry import register

HALVINGS = 10  # the step is halved until the precision is positive definite, down to γ/1024


def covariance_gradient(C: Tensor, dC: Tensor) -> Tensor:
    """∂f/∂S (symmetric) from ∂f/∂C (lower triangular), S = C Cᵀ: C⁻ᵀ sym(Φ(Cᵀ ∂f/∂C)) C⁻¹, [..., M,
    M]."""
    Cinv = triangular_inverse(C)
    phi = (C.mT @ dC).tril()
    torch.linalg.diagonal(phi).mul_(0.5)
    return 0.5 * Cinv.mT @ (phi + phi.mT) @ Cinv


@torch.no_grad()
def natural_step(m: Tensor, C: Tensor, gamma: float) -> None:
    """One natural-gradient ascent step on a bound, from the gradient of its negative.

    ``m.grad`` and ``C.grad`` hold the gradient of the *negative* bound.

        S⁻¹ ← S⁻¹ − 2 γ ∂ELBO/∂S,   S⁻¹ m ← S⁻¹ m + γ (∂ELBO/∂m − 2 ∂ELBO/∂S m)

    m [..., M] and C [..., M, M] are changed in place.  If the new precision is not positive
    definite, γ is halved.

    Raises:
        NumericalError: the precision is not positive definite for any step down to γ/1024.

    Source: Salimbeni, Eleftheriadis and Hensman (2018), eq. (10); Hensman et al. (2013),
    section 3.2.
    """
    assert m.grad is not None
    assert C.grad is not None
    dm = -m.grad
    dS = -covariance_gradient(C, C.grad)
    Cinv = triangular_inverse(C)
    precision = Cinv.mT @ Cinv
    linear = precision @ m.unsqueeze(-1)
    direction = dm.unsqueeze(-1) - 2 * dS @ m.unsqueeze(-1)
    for _ in range(HALVINGS + 1):
        P, info = torch.linalg.cholesky_ex(precision - 2 * gamma * dS)
        if not info.any():
            Pinv = triangular_inverse(P)
            S = Pinv.mT @ Pinv
            factor, info = torch.linalg.cholesky_ex(S)
            if not info.any():
                m.copy_((S @ (linear + gamma * direction)).squeeze(-1))
                C.copy_(factor)
                return
        gamma *= 0.5
    raise NumericalError(
        "the precision of q(u) after a natural gradient step", "lower inference.natural_gamma"
    )


@dataclass(frozen=True)
class DSVIState:
    """A variational model, and the progress of its optimisation."""

    module: Elbo
    optimizer: Adam
    step: int  # finished steps


@register("inference", "dsvi")
class DSVI(Inference[Elbo, Supervised, Batch, DSVIState]):
    """Doubly stochastic variational inference: Adam, optionally natural gradients, on a Monte-Carlo
    ELBO of minibatches.

        φ ← φ + lr_k · Adam(∇_φ (N/B Σ_batch S⁻¹ Σ_s E[log p(y | f_s)] − KL))

        θ ← θ + γ ∂ELBO/∂η   for q(v) = N(m, S) of the chosen layers, θ natural and η expectation parameters

    Info: elbo, log_likelihood and kl in nats for the whole data set, the jitter that K_zz needed,
    lr, grad_norm.

    Source: Salimbeni and Deisenroth (2017); Boustati (2021), eq. (3.14) and A.1.2.
    """

    requires = Requirements(kinds={"supervised"}, capabilities={Elbo})

    lr: PositiveFloat
    betas: Annotated[list[ZeroToBelowOne], Field(min_length=2, max_length=2)]
    schedule: Literal["constant", "cosine", "step"]
    decay_steps: PositiveInt
    decay_factor: AboveZeroToOne
    n_samples: PositiveInt
    n_predict: PositiveInt
    noise_warmup: NonNegativeInt
    natural_layers: Literal["none", "top", "all"]
    natural_gamma: AboveZeroToOne
    natural_warmup: NonNegativeInt
    clip_norm: PositiveFloat | None

    def learning_rate(self, step: int) -> float:
        """lr of step 1, 2, …: constant; cosine from lr to lr · decay_factor over decay_steps; or lr
        times decay_factor once every decay_steps."""
        if self.schedule == "cosine":
            progress = min((step - 1) / self.decay_steps, 1.0)
            floor = self.decay_factor
            return self.lr * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress)))
        if self.schedule == "step":
            return self.lr * self.decay_factor ** ((step - 1) // self.decay_steps)
        return self.lr

    def asked_by_keys(self) -> dict[type, str]:
        keys = {VariationalLayers: "natural_layers"} if self.natural_layers != "none" else {}
        return keys | ({NoiseParameters: "noise_warmup"} if self.noise_warmup else {})

    def _natural(self, module: Elbo) -> list[VariationalLayer]:
        """Layers with natural-gradient updates of q(v)."""
        if self.natural_layers == "none":
            return []
        assert isinstance(module, VariationalLayers)
        layers = list(module.variational_layers().values())
        return layers if self.natural_layers == "all" else layers[-1:]

    def init(self, model: Elbo, problem: Supervised, rng: Rng) -> DSVIState:
        by_natural = {id(p) for layer in self._natural(model) for p in (layer.q_mean, layer.q_tril)}
        parameters = [p for p in model.parameters() if id(p) not in by_natural]
        first, second = self.betas
        return DSVIState(model, Adam(parameters, self.lr, (first, second)), 0)

    def step(self, state: DSVIState, batch: Batch, rng: Rng) -> tuple[DSVIState, Info]:
        module = state.module
        optimizer = state.optimizer
        step = state.step + 1
        layers = self._natural(module)
        module.zero_grad(set_to_none=True)
        terms = module.elbo(batch, module.draw_noise(batch, self.n_samples, rng.noise))
        (-terms["elbo"]).backward()
        if step <= self.noise_warmup:
            assert isinstance(module, NoiseParameters)
            for p in module.noise_parameters():
                p.grad = None
        info: Info = {name: value.detach() for name, value in terms.items()}
        if self.clip_norm is not None:
            info["grad_norm"] = torch.nn.utils.clip_grad_norm_(
                [p for p, _, _ in optimizer.with_gradients()], self.clip_norm
            )
        lr = self.learning_rate(step)
        optimizer.settings["lr"] = lr
        gamma = self.natural_gamma * min(1.0, step / (self.natural_warmup + 1))
        for layer in layers:
            natural_step(layer.q_mean, layer.q_tril, gamma)
        optimizer.step()
        return replace(state, step=step), info | {"lr": lr}

    def posterior(self, state: DSVIState) -> VariationalPosterior:
        return VariationalPosterior(state.module, n_predict=self.n_predict)
