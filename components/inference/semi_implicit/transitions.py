"""A few iterations of Hamiltonian Monte Carlo inside a step of another method, with an adaptive
step size."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.inference.chains import ModelBatch
from components.inference.hamiltonian.leapfrog import Phase, acceptance, energy_error, leapfrog
from components.inference.hamiltonian.mass import Mass
from components.inference.log_joint import value_and_gradient
from components.maths.exponential.standard_draws import standard_uniform

GAIN = 0.1  # adaptation rate of the log step size


def iterate(
    model: LogJoint,
    batch: ModelBatch,
    theta: Tensor,
    iterations: int,
    leapfrog_steps: int,
    eps: float,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """θ after each iteration [iterations, K, P] of K chains from θ [K, P], and the mean acceptance
    rate [].

    r ~ N(0, I);  (θ′, r′) = L leapfrog steps of size ε;  θ ← θ′ with probability min(1, e^{H(θ, r)
    − H(θ′, r′)}): this leaves the density of the model invariant.

    Source: Neal (2011), section 5.3.2."""
    mass = Mass.of(torch.ones_like(theta[0]))
    z = Phase(theta.detach(), torch.zeros_like(theta), *value_and_gradient(model, theta, batch))
    states = []
    rates = []
    for _ in range(iterations):
        z = Phase(z.theta, mass.momentum(z.theta, generator), z.value, z.gradient)
        proposed = leapfrog(model, batch, mass, eps, z, leapfrog_steps)
        rate = acceptance(energy_error(proposed.energy(mass), z.energy(mass)))
        accepted = standard_uniform(rate.shape, generator, rate) < rate
        z = Phase.where(accepted, proposed, z)
        states.append(z.theta)
        rates.append(rate.mean())
    return torch.stack(states), torch.stack(rates).mean()


def adapt_step_size(eps: float, rate: Tensor, target: float) -> float:
    """ε e^{0.1 (rate − target)} for the next step, so that a step size does not depend on its own
    draws."""
    return eps * math.exp(GAIN * (float(rate) - target))
