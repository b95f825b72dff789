"""Policies over a finite set of actions, for R replicates in parallel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from components.errors import NumericalError
from components.maths.exponential.standard_draws import standard_uniform

PolicyName = Literal["epsilon_greedy", "softmax"]
Ties = Literal["shared", "first", "last"]


def probabilities(
    values: Tensor, policy: PolicyName, epsilon: float, temperature: float, ties: Ties = "shared"
) -> Tensor:
    """Probability of each action given its expected value ψ [..., A].

    ε-greedy shares 1 − ε among equal maxima, or assigns it to the first or last one (``ties``).
    ε-greedy: p = (1 − ε) 1[ψ = max ψ] / #maxima + ε/A;  softmax: p ∝ exp(ψ / temperature).  Gallego
    writes "proportional to Q(s, a)", which is impossible for negative values and contradicts the
    name softmax; Gallego's code uses exp(Q), as here.

    Source: Gallego (2021), sections 4.3, 4.4.1.
    """
    if policy == "softmax":
        return torch.softmax(values / temperature, -1)
    highest = values == values.amax(-1, keepdim=True)
    if ties == "first":
        highest = highest & (highest.cumsum(-1) == 1)
    if ties == "last":
        highest = highest & (highest.cumsum(-1) == highest.sum(-1, keepdim=True))
    best = highest.to(values.dtype)
    return best * ((1 - epsilon) / best.sum(-1, keepdim=True)) + epsilon / values.shape[-1]


def in_every_state(
    function: Callable[[Tensor], Tensor], n: int, replicates: int, device: torch.device
) -> Tensor:
    """Values of a function of states s [R] -> [R, …] in the states 0 … n − 1, [R, n, …]."""
    states = torch.arange(n, device=device)
    return torch.stack([function(s.expand(replicates)) for s in states], 1)


def check_finite(p: Tensor, player: str) -> None:
    """Check that a policy p [R, A] is finite.

    Raises:
        NumericalError: the policy is not finite, for example because action values overflowed.
    """
    if not bool(p.isfinite().all()):
        raise NumericalError(
            f"{player}: the policy is not finite",
            f"lower {player}.alpha or lr, or scale down observations (divide by 255)",
        )


def draw_action(p: Tensor, generator: torch.Generator) -> Tensor:
    """One action per replicate by inversion of the cumulative p [R, A] -> [R] long, with one
    uniform number each."""
    u = standard_uniform((p.shape[0], 1), generator, p)
    return (u >= p.cumsum(-1)[:, :-1]).sum(-1)  # the last action takes the rounding error
