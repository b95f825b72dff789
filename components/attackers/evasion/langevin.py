"""Noisy descent on the victim's log-probability, by which a defender who is unsure of the attack
draws from p_C(x'|x)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from components.attackers.norms import NORMS, gaussian
from components.contracts.victim import Criterion, NormName, Victim


def beta_sizes(
    rows: Tensor, largest: float, shapes: Sequence[float], generator: torch.Generator
) -> Tensor:
    """ε ~ largest · Beta(shapes), one for each row of ``rows`` [B, D]: [B, 1]."""
    both = torch.tensor(list(shapes), dtype=torch.float64, device=generator.device).expand(
        len(rows), 2
    )
    gamma = torch._standard_gamma(both, generator=generator)
    share = gamma[:, :1] / gamma.sum(1, keepdim=True).clamp_min(torch.finfo(gamma.dtype).tiny)
    return largest * share.to(rows)


def poisson_steps(rows: Tensor, mean: float, generator: torch.Generator) -> Tensor:
    """T ~ Poisson(mean), one for each row of ``rows`` [B, D]: [B]; 0 leaves the row as it is."""
    rates = torch.full((len(rows),), mean, dtype=torch.float64, device=generator.device)
    return torch.poisson(rates, generator=generator).long().to(rows.device)


def langevin(
    victim: Victim,
    x: Tensor,
    y: Tensor,
    generator: torch.Generator,
    *,
    step_size: Tensor,
    steps: Tensor,
    temperature: float,
    radius: float | None,
    norm: NormName = "linf",
    margin: Tensor | None = None,
) -> Tensor:
    """x_T of x_{t+1} = clip(Π(x_t − ε sign ∇_x J(x_t) + N(0, 2 ε τ I))).

    Each row has its own ε [B, 1] and T [B].  Π holds x_t within ``radius`` of x in the norm
    (None: no ball, only the bounds).  J is log p(y|x), or the victim's margin for the rows
    of ``margin`` [B] bool.  τ = 1 is the equation as printed, with noise of standard
    deviation √(2ε), far larger than its step ε where ε < 1; τ = 0 is deterministic.  A row
    in which all labels are missing (y < 0) stays unchanged.

    Source: Gallego (2021), eq. (3.14).
    """
    x_adv = x.clone()
    victim = victim.soften(norm)
    for t in range(int(steps.max()) if len(steps) else 0):
        rows = (steps > t).nonzero()[:, 0]  # rows that are done drop out
        here = x_adv[rows]
        eps = step_size[rows]
        if temperature > 0:
            # Noise for all rows: a row's noise does not depend on how long the others go on.
            noise = gaussian(x, generator)
        rule: Criterion = "cross_entropy" if margin is None else "margin"
        gradient = victim.input_gradient(
            here, y[rows], generator, rule, None if margin is None else margin[rows]
        )
        moved = here - eps * gradient.sign()  # eq. (3.14)
        if temperature > 0:
            moved = moved + (2 * temperature * eps).sqrt() * noise[rows]
        if radius is not None:
            moved = x[rows] + NORMS[norm].project(moved - x[rows], radius)
        x_adv[rows] = victim.clip(moved)
    return torch.where((y >= 0).any(1, keepdim=True), x_adv, x)
