"""Draws of the coefficients of a structural series' own dynamics: autoregressions, slopes that
return, goodwill that fades."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.structural import Dynamics
from components.series.conditionals.slice_sampling import slice_sample
from components.series.maths.simulation_smoother import in_order
from components.series.maths.stationary import coefficients_to_partial
from components.series.structural.fading import FadingRegression

# draws of an autoregression's coefficients, until one is stationary
TRIES = 30


def stationary(phi: Tensor) -> Tensor:
    """True where x_t = Σ φ_j x_{t−j} + ε_t is stationary, for φ [..., k]."""
    rows = phi.reshape(-1, phi.shape[-1])
    return (coefficients_to_partial(rows).abs() < 1).all(1).view(phi.shape[:-1])


def is_allowed(moves: Dynamics, phi: Tensor) -> Tensor:
    """True where φ [..., k] lies in the support of its prior."""
    if moves.within is None:
        return stationary(phi)
    return ((phi > moves.within[0]) & (phi < moves.within[1])).all(-1)


def draw_dynamics(
    moves: Dynamics,
    base: Tensor,
    states: Tensor,
    scale: Tensor,
    phi: Tensor,
    generator: torch.Generator,
    besides: FadingRegression | None,
) -> Tensor:
    """φ [C, k] from its normal conditional where it may lie: target_t = design_t φ + N(0, scale²),
    t = 2 … n.

    One coefficient by slice sampling, ``besides`` being what columns that fade with it say; several
    by drawing until they are stationary, at most 30 times, after which those before stay: exact as
    well.

    ``base`` [d] is the row of G without φ, states [C, n, d], scale [C].  Source: Scott and Varian
    (2014), section 2.2, as bsts does it; Neal (2003)."""
    before = states[:, :-1]
    after = states[:, 1:, moves.row]
    target = after - in_order(before * base)
    weight = 1 / (scale * scale)
    prior = moves.precision
    if moves.count == 1:
        regressor = in_order(before * moves.terms[0])  # [C, n − 1]
        p = in_order(regressor * regressor) * weight + prior
        b = in_order(regressor * target) * weight + prior * moves.mean
        x = phi[:, 0]
        low, high = moves.interval
        if besides is not None:
            return besides.draw(p, b, x, low, high, generator).unsqueeze(1)
        return slice_sample(lambda x: (b - 0.5 * p * x) * x, x, low, high, generator).unsqueeze(1)
    assert besides is None  # stocks fade with one number
    design = before @ moves.terms.T  # [C, n − 1, k]
    precision = design.mT @ design * weight[:, None, None] + prior * torch.eye(moves.count).to(
        design
    )
    # [C, k]
    pull = (design.mT @ target.unsqueeze(2)).squeeze(2) * weight.unsqueeze(1) + prior * moves.mean
    L = torch.linalg.cholesky(precision)
    mean = torch.cholesky_solve(pull.unsqueeze(2), L)  # [C, k, 1]
    z = torch.randn(
        len(phi), moves.count, TRIES, generator=generator, device=generator.device, dtype=phi.dtype
    )
    tried = (mean + torch.linalg.solve_triangular(L.mT, z, upper=True)).mT  # [C, TRIES, k]
    good = is_allowed(moves, tried)
    first = good.double().argmax(1)
    proposal = tried[torch.arange(len(phi), device=phi.device), first]
    return torch.where(good.any(1, keepdim=True), proposal, phi)
