"""The accept step shared by Metropolis–Hastings samplers."""

from __future__ import annotations

import torch
from torch import Tensor

from components.errors import NumericalError
from components.inference.chains import name_chains
from components.maths.exponential.standard_draws import standard_uniform


def metropolis_hastings(
    value: Tensor, proposed: Tensor, correction: Tensor | float, t: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Accepted proposals [C] bool at step t, and their acceptance probabilities α [C].

        α = 1 ∧ π(θ') q(θ | θ') / (π(θ) q(θ' | θ))

    ``value`` = log π(θ), ``proposed`` = log π(θ') and ``correction`` = log q(θ | θ') − log
    q(θ' | θ), all [C].  A proposal with no density (−∞) is rejected for any correction.
    Raises NumericalError if log π(θ') is NaN or +∞, or if it is finite and its correction
    is not.

    Source: Robert and Casella (2004), section 7.3; Bardenet (2021), section 4.2.
    """
    ratio = torch.where(proposed == -torch.inf, -torch.inf, proposed - value + correction)
    wrong = torch.isnan(ratio) | (proposed == torch.inf)
    if wrong.any():
        chains = wrong.nonzero().flatten().tolist()
        density = float(proposed[chains[0]])
        subject = (
            "the gradient of the log density"
            if torch.isfinite(proposed[chains[0]])
            else f"the log density ({density:g})"
        )
        raise NumericalError(
            f"{subject} is not a number at the proposals of {name_chains(chains)} at step {t}",
            "lower inference.step_size, or fix the density of the model",
        )
    alpha = ratio.clamp(max=0).exp()
    # [0, 1)
    u = standard_uniform(alpha.shape, generator, alpha)
    return u < alpha, alpha
