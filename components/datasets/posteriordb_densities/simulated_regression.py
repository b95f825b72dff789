"""A simulated regression with exact posterior moments, used without posteriordb's files."""

from __future__ import annotations

import torch

from components.datasets.posteriordb_densities.gaussian_regressions import (
    GaussianRegression,
    numbered_names,
)
from components.datasets.posteriordb_densities.scale_priors import half_normal
from components.figures.samples.trace import trace
from components.problems.density import Density

ROWS = 30
SEED = 1931
BETA = (1.0, -0.5, 0.0)
SIGMA = 0.7


def regression(dtype: torch.dtype, device: torch.device) -> GaussianRegression:
    """Posterior of a linear regression simulated on 30 rows.

    y ~ N(Xβ, σ²), a constant and two inputs with correlation 0.8; β ~ N(0, 2²),
    σ ~ N⁺(0, 1).  The data do not depend on the seed of a run.
    """
    g = torch.Generator().manual_seed(SEED)
    z = torch.randn(ROWS, 3, generator=g, dtype=torch.float64)
    X = torch.stack(
        [torch.ones(ROWS, dtype=torch.float64), z[:, 0], 0.8 * z[:, 0] + 0.6 * z[:, 1]], 1
    )
    y = X @ X.new_tensor(BETA) + SIGMA * z[:, 2]
    prior = ([0.0] * 3, [2.0] * 3)
    return GaussianRegression.of(
        numbered_names("beta", 3), X.to(device, dtype), y.to(device, dtype), half_normal(1.0), prior
    )


def simulated_regression(name: str, dtype: torch.dtype, device: torch.device) -> Density:
    """Its posterior, with moments from quadrature."""
    density = regression(dtype, device)
    mean, second = density.exact_moments()
    sd = (second - mean.square()).sqrt()
    return Density(
        name=name,
        names=density.names,
        log_density=density.log_density,
        sample_prior=density.start,
        mean=mean,
        second_moment=second,
        box=[(float(m - 5 * s), float(m + 5 * s)) for m, s in zip(mean, sd, strict=True)],
        constrain=density.constrain,
        figures=[trace],
    )
