"""Densities of posteriordb's posteriors over unconstrained θ, reimplemented from their equations.

``DENSITIES`` builds a density from the data of its posterior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from components.datasets.named_target import NamedVariables
from components.datasets.posteriordb_densities import gaussian_regressions
from components.datasets.posteriordb_densities.eight_schools import eight_schools
from components.datasets.posteriordb_densities.gaussian_mixture import two_gaussians
from components.datasets.posteriordb_densities.gaussian_process import gaussian_process
from components.datasets.posteriordb_densities.time_series import HiddenMarkov, garch

DENSITIES: dict[str, Callable[[dict[str, Any], Tensor], NamedVariables]] = {
    "sblri-blr": gaussian_regressions.blr,
    "kidiq-kidscore_momiq": gaussian_regressions.kidscore_momiq,
    "kilpisjarvi_mod-kilpisjarvi": gaussian_regressions.kilpisjarvi,
    "mesquite-logmesquite": gaussian_regressions.logmesquite,
    "nes2000-nes": gaussian_regressions.nes,
    "arK-arK": gaussian_regressions.autoregression,
    "eight_schools-eight_schools_noncentered": eight_schools,
    "low_dim_gauss_mix-low_dim_gauss_mix": two_gaussians,
    "hmm_example-hmm_example": HiddenMarkov,
    "garch-garch11": garch,
    "gp_pois_regr-gp_regr": gaussian_process,
}
