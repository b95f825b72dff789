"""Batched Hamiltonian Monte Carlo: S draws from each of B separate densities."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from components.maths.exponential.standard_draws import normal_like, standard_uniform

# z [S, B, D] -> additional values of a draw, log f(z), both [S, B], and ∇log f(z) [S, B, D]
Field = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]


def transition(
    field: Field, z: Tensor, size: Tensor, steps: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """One step that leaves every f_b invariant.  Returns the next z [S, B, D], its additional
    values and the acceptance rate, both [S, B].

        r ~ N(0, I);  ``steps`` times  r ← r + ½ε ∇log f(z),  z ← z + ε r,  r ← r + ½ε ∇log f(z)
        accepted with probability min(1, f(z′) e^{−‖r′‖²/2} / (f(z) e^{−‖r‖²/2}))

    ``size`` ε [B, 1] or [B, D]: a step size for each density or for each of its dimensions, which
    must not depend on z.

    Source: Neal (2011), section 5.3.2."""
    noise = normal_like(z, generator)
    goes, value, gradient = field(z)
    energy = 0.5 * noise.square().sum(-1) - value
    z_new = z
    r = noise + 0.5 * size * gradient
    extra = goes
    for step in range(steps):
        z_new = z_new + size * r
        extra, value, gradient = field(z_new)
        r = r + (size if step < steps - 1 else 0.5 * size) * gradient
    error = (0.5 * r.square().sum(-1) - value - energy).nan_to_num(torch.inf, torch.inf, torch.inf)
    rate = (-error).clamp(max=0.0).exp()
    accepted = standard_uniform(rate.shape, generator, rate) < rate
    return torch.where(accepted[..., None], z_new, z), torch.where(accepted, extra, goes), rate
