"""Noisy descent on the victim's log-probability, for draws from the defender's p_C(x'|x) under an
uncertain attack."""

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
    """T ~ Poisson(mean), one for each row of ``rows`` [B, D]: [B]; 0 leaves the row unchanged."""
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

    Each row has its own ε [B, 1] and T [B].  Π projects x_t to within ``radius`` of x in the norm
    (if None, only to the bounds).  J is log p(y|x), or the victim's margin for the rows of
    ``margin`` [B] bool.  τ = 1 is the printed equation, with noise of standard deviation √(2ε), far
    larger than the step ε for ε < 1; τ = 0 is deterministic.  Rows without labels (y < 0) stay
    unchanged.

    Source: Gallego (2021), eq. (3.14).
    """
    x_adv = x.clone()
    victim = victim.soften(norm)
    for t in range(int(steps.max()) if len(steps) else 0):
        rows = (steps > t).nonzero()[:, 0]  # drop finished rows
        current = x_adv[rows]
        eps = step_size[rows]
        if temperature > 0:
            # Noise for all rows, so that a row's noise does not depend on the other rows' numbers
            # of steps.
            noise = gaussian(x, generator)
        rule: Criterion = "cross_entropy" if margin is None else "margin"
        gradient = victim.input_gradient(
            current, y[rows], generator, rule, None if margin is None else margin[rows]
        )
        proposed = current - eps * gradient.sign()  # eq. (3.14)
        if temperature > 0:
            proposed = proposed + (2 * temperature * eps).sqrt() * noise[rows]
        if radius is not None:
            proposed = x[rows] + NORMS[norm].project(proposed - x[rows], radius)
        x_adv[rows] = victim.clip(proposed)
    return torch.where((y >= 0).any(1, keepdim=True), x_adv, x)
