"""Leapfrog integration of Hamilton's equations for C chains in parallel."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.inference.chains import ModelBatch
from components.inference.hamiltonian.mass import Mass
from components.inference.log_joint import log_joint_gradient, value_and_gradient

# energy error above which a trajectory has diverged (Stan's threshold)
DIVERGENT = 1000.0


@dataclass(frozen=True)
class Phase:
    """Points (θ, r) of phase space, with the costly log π(θ) and its gradient."""

    theta: Tensor  # [C, P]
    r: Tensor  # [C, P]
    value: Tensor  # [C]
    gradient: Tensor  # [C, P]

    def energy(self, mass: Mass) -> Tensor:
        """H(θ, r) = −log π(θ) + ½ rᵀ M⁻¹ r up to a constant, [C]."""
        return mass.kinetic(self.r) - self.value

    @staticmethod
    def where(condition: Tensor, a: Phase, b: Phase) -> Phase:
        """Select a where the condition [C] holds, else b."""
        column = condition.unsqueeze(1)
        return Phase(
            torch.where(column, a.theta, b.theta),
            torch.where(column, a.r, b.r),
            torch.where(condition, a.value, b.value),
            torch.where(column, a.gradient, b.gradient),
        )


def leapfrog(
    model: LogJoint, batch: ModelBatch, mass: Mass, eps: float, z: Phase, n_steps: int = 1
) -> Phase:
    """``n_steps`` leapfrog steps of size ε.

    r ← r + ½ε ∇log π(θ),  θ ← θ + ε M⁻¹ r,  r ← r + ½ε ∇log π(θ).  The map is reversible (with r
    negated) and volume-preserving; its energy error is O(ε²).  Consecutive half steps are merged,
    so that log π itself is computed only at the end of the trajectory.

    Source: Bardenet (2021), section 4.4.4; Neal (2011), eqs. (2.28)-(2.30)."""
    theta = z.theta
    r = torch.add(z.r, z.gradient, alpha=0.5 * eps)
    for _ in range(n_steps - 1):
        theta = mass.move(theta, r, eps)
        r = torch.add(r, log_joint_gradient(model, theta, batch), alpha=eps)
    theta = mass.move(theta, r, eps)
    value, gradient = value_and_gradient(model, theta, batch)
    return Phase(theta, torch.add(r, gradient, alpha=0.5 * eps), value, gradient)


def energy_error(after: Tensor, before: Tensor) -> Tensor:
    """H(θ′, r′) − H(θ, r) [C]; +∞ where it is not finite, so that such states are never
    accepted."""
    return (after - before).nan_to_num(torch.inf, torch.inf, torch.inf)


def acceptance(error: Tensor) -> Tensor:
    """min(1, e^{H(θ, r) − H(θ′, r′)}) from the energy error H(θ′, r′) − H(θ, r) [C].

    (Bardenet prints e^{−H(q,p)−H(q′,p′)}, a misprint.)

    Source: Bardenet (2021), section 4.4.4; Neal (2011), section 5.3.2."""
    return (-error).clamp(max=0.0).exp()
