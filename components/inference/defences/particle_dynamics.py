"""Dynamics of particles in parallel, optionally with separate inputs for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LogJoint, OwnInputs
from components.contracts.capabilities.densities import PredictiveLogJoint
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, ZeroToBelowOne
from components.contracts.states import not_checkpointed
from components.errors import NumericalError
from components.inference.chains import NEEDS_TO_PREDICT, Chains
from components.inference.defences.training_threat import TrainingThreat
from components.inference.log_joint import value_and_gradient
from components.maths.exponential.standard_draws import normal_like
from components.problems.supervised import Supervised


@dataclass(kw_only=True)
class AdversarialChains(Chains):
    """State of K particles that learn from attacked rows."""

    model: PredictiveLogJoint = not_checkpointed()
    threat: TrainingThreat = not_checkpointed()
    velocity: Tensor  # v [K, P]


A = TypeVar("A", bound=AdversarialChains)


class ParticleDefence(Inference[PredictiveLogJoint, Supervised, Batch, A], Generic[A]):
    """Base of defences of K particles that learn from attacked rows."""

    requires = Requirements(
        kinds={"supervised"},
        capabilities={LogJoint},
        capabilities_by_kind=NEEDS_TO_PREDICT,
        attacker=True,
    )

    chains: PositiveInt
    train_eps: NonNegativeFloat
    lr: PositiveFloat
    momentum: ZeroToBelowOne
    temperature: NonNegativeFloat

    def momentum_step(
        self,
        theta: Tensor,
        velocity: Tensor,
        gradient: Tensor,
        eta: float,
        temperature: float,
        generator: torch.Generator,
        step: int,
        quiet: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """v := μ v + η ∇ + N(0, 2 (1 − μ) η τ I),  β := β + v;  β, v, ∇ [K, P].

        The first ``quiet`` particles have τ = 0.

        Raises:
            NumericalError: a particle becomes non-finite.

        Source: Gallego (2021), eq. (3.15); Chen et al. (2014), eq. (15) (momentum)."""
        velocity = torch.add(self.momentum * velocity, gradient, alpha=eta)
        if temperature > 0:
            noise = normal_like(theta[quiet:], generator)
            velocity[quiet:].add_(noise, alpha=(2 * (1 - self.momentum) * eta * temperature) ** 0.5)
        theta = theta + velocity
        if not bool(torch.isfinite(theta.sum())):
            raise NumericalError(
                f"particles became non-finite at step {step}", "lower inference.lr"
            )
        return theta, velocity


def per_particle_gradient(model: LogJoint, theta: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Log joint [K] and gradient [K, P] of K particles with separate inputs, batch.x [K, B, D]."""
    if isinstance(model, OwnInputs) and model.own_inputs:
        return value_and_gradient(model, theta, batch)
    parts = [
        value_and_gradient(model, beta, Batch(x.contiguous(), batch.y, batch.mask, batch.scale))
        for beta, x in zip(theta.split(1), batch.x, strict=True)
    ]
    return torch.cat([value for value, _ in parts]), torch.cat([gradient for _, gradient in parts])
