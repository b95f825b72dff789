"""Simulation of θ from the prior of a structural series, and of observations given θ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import StructuralSeries
from components.contracts.structural import Dynamics, Scale, Structure
from components.errors import ConfigMismatchError
from components.series.forecasting import Forecasting
from components.series.structural.compiled.marginal_moves import is_stationary
from components.series.structural.compiled.truncated_gamma import variance_from_gamma

F64 = torch.float64


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=F64, device=generator.device)


def _gamma(shape: float | Tensor, generator: torch.Generator) -> Tensor:
    """A draw of Gamma(shape, 1) [1]."""
    return torch._standard_gamma(shape * torch.ones(1, dtype=F64), generator=generator)


def draw_theta(structure: Structure, generator: torch.Generator) -> Tensor:
    """θ [1, P] from its prior, float64: σ, φ, β (0 for an excluded column) and, where it is drawn,
    ν."""
    sigma = torch.cat([_draw_sigma(scale, generator) for scale in structure.scales])
    phi = [_draw_phi(moves, generator) for moves in structure.transitions]
    parts = [sigma, *phi, _draw_beta(structure, sigma[0], generator)]
    errors = structure.errors
    if errors.is_nu_sampled:
        parts.append(2 + _gamma(errors.shape, generator) / errors.rate)
    return torch.cat(parts)[None]


def _draw_sigma(scale: Scale, generator: torch.Generator) -> Tensor:
    """σ [1] with 1/σ² ~ Gamma(df/2, df guess²/2), given σ ≤ upper."""
    shape = scale.df / 2
    with np.errstate(over="ignore"):  # in the hash
        variance = variance_from_gamma(
            float(_gamma(shape, generator)), shape, shape * scale.guess**2, scale.upper
        )
    return torch.tensor([variance], dtype=F64).sqrt()


def _draw_phi(moves: Dynamics, generator: torch.Generator) -> Tensor:
    """φ [k] by rejection of values outside the support of the prior."""
    while True:
        if moves.sd == torch.inf:
            low, high = moves.within or (-float(moves.count), float(moves.count))
            u = torch.rand(moves.count, generator=generator, dtype=F64)
            phi = low + (high - low) * u
        else:
            phi = moves.mean + moves.sd * _normal((moves.count,), generator)
        if is_allowed(moves, phi.numpy()):
            return phi


def is_allowed(moves: Dynamics, phi: np.ndarray) -> bool:
    """True if φ [k] lies in the support of the prior."""
    if moves.within is None:
        return is_stationary(phi.copy(), np.empty(len(phi)))
    return bool(((phi > moves.within[0]) & (phi < moves.within[1])).all())


def _draw_beta(structure: Structure, sigma: Tensor, generator: torch.Generator) -> Tensor:
    """β [p]: γ_i ~ Bernoulli(π_i), β_γ ~ N(0, σ² (Ω_γγ)⁻¹)."""
    p = len(structure.inclusion)
    beta = torch.zeros(p, dtype=F64)
    inside = torch.rand(p, generator=generator, dtype=F64) < structure.inclusion.cpu()
    if inside.any():
        L = torch.linalg.cholesky(structure.precision.cpu()[inside][:, inside])
        z = _normal((int(inside.sum()), 1), generator)
        beta[inside] = sigma * torch.linalg.solve_triangular(L.mT, z, upper=True)[:, 0]
    return beta


def simulate_series(
    model: StructuralSeries, problem: Forecasting, theta: Tensor, generator: torch.Generator
) -> Forecasting:
    """A problem with observations and future drawn given θ [1, P].

    Covariates and missing times are taken from ``problem``.

    Raises:
        ConfigMismatchError: the problem has no future.
    """
    ahead = problem.future.shape[1]
    if ahead == 0:
        raise ConfigMismatchError(
            f"dataset={problem.name}: calibration of forecasts requires times after the training times; set dataset.n_ahead"
        )
    structure = model.structure
    design = model.design(problem.series, ahead)
    system = model.system(theta, design)
    state = system.mean + system.sd * _normal((1, len(system.mean)), generator)
    errors = structure.errors
    nu = theta[0, -1] if errors.is_nu_sampled else errors.nu
    y = torch.empty(len(design.y), dtype=F64)
    for t in range(len(y)):
        precision = _gamma(nu / 2, generator) / (nu / 2) if errors.student and nu else 1.0
        noise = (system.noise[:, t] / precision).sqrt() * _normal((1,), generator)
        y[t] = (state @ system.F[t] + system.offset[:, t] + noise)[0]
        steps = system.W.sqrt() * _normal(tuple(state.shape), generator)
        state = (system.G @ state.unsqueeze(2)).squeeze(2) + steps
    times = len(y) - ahead
    observed = y[:times].clone()
    observed[problem.observations[0, :, 0].isnan()] = torch.nan
    return replace(
        problem,
        observations=observed.view(1, -1, 1).to(problem.observations),
        future=y[times:].view(1, -1, 1).to(problem.future),
        budget=None,
    )
