"""Particles: parameter vectors that predict together and learn side by side, each perhaps on inputs of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.roles import NumericalTrouble
from components.inference.log_joint import value_and_gradient
from components.posteriors.predictive import Categorical, Predictive
from components.problems.supervised import Batch


@dataclass(frozen=True)
class Particles:
    """A mixture of K parameter vectors θ [K, P], equally weighted: the last states of as many chains, and no more."""

    model: Any
    theta: Tensor

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """K⁻¹ Σ_k p(y|x, θ_k) at x [B, D]; differentiable in x."""
        return self.model.predict(self.theta, x)

    def some(self, n: int, generator: torch.Generator | None) -> Particles:
        """n of the particles: at random with replacement, or the first n without a generator."""
        if generator is None:
            return Particles(self.model, self.theta[:n])
        rows = torch.randint(len(self.theta), (n,), generator=generator, device=generator.device)
        return Particles(self.model, self.theta[rows.to(self.theta.device)])


@dataclass(frozen=True)
class OwnRows:
    """K particles θ [K, P], each the victim of its own block of B of the K B rows: all attacks at once."""

    model: Any
    theta: Tensor

    def predict(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """Predictive of x [K B, D], its k-th block by the k-th particle; differentiable in x."""
        blocks = x.unflatten(0, (len(self.theta), -1))  # [K, B, D]
        if getattr(self.model, "own_inputs", False):
            logits = self.model.predict(self.theta, blocks).logits  # [K, B, T, C]
        else:
            pairs = zip(self.theta.split(1), blocks, strict=True)
            logits = torch.cat([self.model.predict(beta, block).logits for beta, block in pairs])
        return Categorical(logits.flatten(0, 1).unsqueeze(0))


def kicked(
    theta: Tensor,
    velocity: Tensor,
    gradient: Tensor,
    eta: float,
    momentum: float,
    temperature: float,
    generator: torch.Generator,
    step: int,
) -> tuple[Tensor, Tensor]:
    """v := μ v + η ∇ + N(0, 2 (1 − μ) η τ I),  β := β + v;  β, v, ∇ [K, P].

    Raises:
        NumericalTrouble: a particle leaves the finite numbers.

    Source: Gallego (2021), eq. (3.15); Chen et al. (2014), eq. (15) (momentum)."""
    velocity = torch.add(momentum * velocity, gradient, alpha=eta)
    if temperature > 0:
        noise = torch.randn(theta.shape, generator=generator, device=theta.device, dtype=theta.dtype)
        velocity.add_(noise, alpha=(2 * (1 - momentum) * eta * temperature) ** 0.5)
    theta = theta + velocity
    if not bool(torch.isfinite(theta.sum())):
        raise NumericalTrouble(f"particles left the finite numbers at step {step}", "lower inference.lr")
    return theta, velocity


def own_gradient(model: LogJoint, theta: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """log joint [K] and gradient [K, P] of K particles, each with inputs of its own: batch.x [K, B, D]."""
    if getattr(model, "own_inputs", False):
        return value_and_gradient(model, theta, batch)
    parts = [
        value_and_gradient(model, beta, Batch(x.contiguous(), batch.y, batch.mask, batch.scale))
        for beta, x in zip(theta.split(1), batch.x, strict=True)
    ]
    return torch.cat([value for value, _ in parts]), torch.cat([gradient for _, gradient in parts])
