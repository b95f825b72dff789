"""Densities of posteriordb's posteriors over unconstrained θ, written out again from their
mathematics.

Each is a ``PosteriorDensity``; ``DENSITIES`` makes one from the data of its posterior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from components.datasets.posteriordb_densities import (
    eight_schools,
    gaussian_mixture,
    gaussian_process,
    gaussian_regressions,
    time_series,
)


class PosteriorDensity(Protocol):
    """A density of θ [K, P] for K chains in parallel, with named parameters [K, P']."""

    @property
    def names(self) -> list[str]: ...  # of the P' parameters

    @property
    def dim(self) -> int: ...  # P

    # [K, P] -> [K], up to a constant, with the log-Jacobian
    def log_density(self, theta: Tensor) -> Tensor: ...

    def constrain(self, theta: Tensor) -> Tensor: ...  # [K, P] -> [K, P']

    def unconstrain(self, parameters: Tensor) -> Tensor: ...  # [K, P'] -> [K, P]

    # [n, P], about the posterior and mostly wider
    def start(self, n: int, generator: torch.Generator) -> Tensor: ...


Make = Callable[[dict[str, Any], torch.dtype, torch.device], PosteriorDensity]

DENSITIES: dict[str, Make] = {
    "sblri-blr": gaussian_regressions.blr,
    "kidiq-kidscore_momiq": gaussian_regressions.kidscore_momiq,
    "kilpisjarvi_mod-kilpisjarvi": gaussian_regressions.kilpisjarvi,
    "mesquite-logmesquite": gaussian_regressions.logmesquite,
    "nes2000-nes": gaussian_regressions.nes,
    "arK-arK": gaussian_regressions.autoregression,
    "eight_schools-eight_schools_noncentered": eight_schools.EightSchools.of,
    "low_dim_gauss_mix-low_dim_gauss_mix": gaussian_mixture.TwoGaussians.of,
    "hmm_example-hmm_example": time_series.HiddenMarkov.of,
    "garch-garch11": time_series.Garch.of,
    "gp_pois_regr-gp_regr": gaussian_process.GaussianProcess.of,
}
