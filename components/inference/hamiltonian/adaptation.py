"""Warm-up of Hamiltonian samplers: step size by dual averaging, mass matrix in windows, both shared
by all chains."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.errors import NumericalError
from components.inference.chains import ModelBatch
from components.inference.hamiltonian.leapfrog import Phase, acceptance, energy_error, leapfrog
from components.inference.hamiltonian.mass import Mass

SMALLEST = 1e-12  # smaller step sizes do not change θ
FEWEST = 20  # shorter warm-up learns only the step size, as in Stan
INITIAL = 75
BASE = 25
FINAL = 50  # Stan's windows, in steps


def windows(warmup: int) -> tuple[int, list[int]]:
    """The step from which states count for the mass matrix, and the steps after which it is
    updated.

    Windows double in length; each discards earlier states, which were further from the target.

    Source: Stan Development Team (2024), Reference Manual, section on automatic parameter
    tuning."""
    if warmup < FEWEST:
        return 0, []
    initial = INITIAL
    base = BASE
    final = FINAL
    if initial + base + final > warmup:
        initial = int(0.15 * warmup)
        final = int(0.1 * warmup)
        base = warmup - initial - final
    ends = []
    start = initial
    while start < warmup - final:
        end = start + base
        if end + 2 * base > warmup - final:  # the next window would not fit
            end = warmup - final
        ends.append(end)
        start = end
        base = 2 * base
    return initial, ends


def last_search_step(warmup: int) -> int:
    """Last step at which the chains may still search for the target.

    This is the end of the second-to-last window.  With one window it is the end of the
    initial steps; 0 without windows.
    """
    initial, ends = windows(warmup)
    return ends[-2] if len(ends) > 1 else initial


def harmonic_mean(rate: Tensor) -> Tensor:
    """Harmonic mean of the chains' acceptance rates [C]; stuck chains lower it."""
    return 1 / (1 / rate).mean()


@dataclass(frozen=True)
class DualAveraging:
    """Nesterov's dual averaging of log ε towards a mean acceptance rate.

    H̄ ← (1 − 1/(m+t₀)) H̄ + (δ − α)/(m+t₀),  log ε = μ − √m/γ H̄,
    log ε̄ ← m^−κ log ε + (1 − m^−κ) log ε̄, with γ = 0.05, t₀ = 10, κ = 0.75, μ = log 10ε₀.

    Source: Hoffman & Gelman (2014), eq. (6) and Algorithm 5."""

    mu: float
    log_step: float
    log_average: float = 0.0
    error: float = 0.0
    m: int = 0

    @staticmethod
    def around(step_size: float) -> DualAveraging:
        return DualAveraging(math.log(10 * step_size), math.log(step_size), math.log(step_size))

    def learnt(self, rate: float, target: float) -> DualAveraging:
        m = self.m + 1
        error = self.error + (target - rate - self.error) / (m + 10)
        log_step = self.mu - m**0.5 / 0.05 * error
        weight = m**-0.75
        return DualAveraging(
            self.mu, log_step, weight * log_step + (1 - weight) * self.log_average, error, m
        )


@dataclass(frozen=True)
class Scatter:
    """Running mean and scatter of the states of all chains; the scatter is [P] for a diagonal mass,
    else [P, P].

    Source: Chan, Golub & LeVeque (1983), eq. (2.1)."""

    count: int
    mean: Tensor  # [P]
    scatter: Tensor

    @staticmethod
    def none(like: Tensor, dense: bool) -> Scatter:
        P = like.shape[1]
        return Scatter(0, like.new_zeros(P), like.new_zeros((P, P) if dense else (P,)))

    def with_states(self, theta: Tensor) -> Scatter:
        """The statistics after adding states θ [C, P]."""
        n = len(theta)
        mean = theta.mean(0)
        count = self.count + n
        shift = mean - self.mean
        centred = theta - mean
        factor = self.count * n / count
        if self.scatter.dim() == 1:
            added = centred.square().sum(0) + factor * shift.square()
        else:
            added = centred.T @ centred + factor * torch.outer(shift, shift)
        return Scatter(count, self.mean + shift * (n / count), self.scatter + added)

    def covariance(self) -> Tensor:
        """Covariance, shrunk by the weight of five states towards 10⁻³ of its own diagonal.

        Stan shrinks towards 10⁻³ I in the units of θ, which hides directions of variance 10⁻⁹.
        """
        n = self.count
        covariance = self.scatter / max(n - 1, 1)
        if covariance.dim() == 1:
            return covariance * ((n + 5e-3) / (n + 5))
        return covariance * (n / (n + 5)) + torch.diag(covariance.diagonal() * (5e-3 / (n + 5)))


@dataclass(frozen=True)
class Tuning:
    """Tuning parameters learned in warm-up."""

    step_size: float
    mass: Mass
    averaging: DualAveraging
    scatter: Scatter


def find_reasonable_step(
    model: LogJoint, batch: ModelBatch, mass: Mass, eps: float, z: Phase, generator: torch.Generator
) -> float:
    """Double or halve ε until the mean acceptance rate of one leapfrog step over the chains crosses
    ½.

    Raises NumericalError if no step size is small enough.

    Source: Hoffman & Gelman (2014), Algorithm 4."""
    z = replace(z, r=mass.momentum(z.theta, generator))
    start_energy = z.energy(mass)

    def crosses(eps: float) -> bool:
        after = leapfrog(model, batch, mass, eps, z).energy(mass)
        return bool(acceptance(energy_error(after, start_energy)).mean() > 0.5)

    up = crosses(eps)
    while crosses(eps) == up and eps < 1e7:
        eps = 2 * eps if up else eps / 2
        check_step_size(eps)
    return eps


def check_step_size(eps: float) -> float:
    """Return ε.  Raises NumericalError if it has collapsed."""
    if not eps > SMALLEST:
        raise NumericalError(
            f"the step size has collapsed in warm-up ({eps:.1e})",
            "the log density may not be differentiable; lower inference.target_acceptance, or "
            "change where chains start",
        )
    return eps
