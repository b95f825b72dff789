"""Bootstrap filters of the package particles: stochastic volatility and terrain navigation."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.maths.compiled.elevation_map import PER_METRE, hills, multiples, peaks
from components.series.models.tan import TerrainModule
from scripts.peers.installed import peer_imports

MU, PHI, SIGMA = -1.0, 0.95, 0.3


def import_particles() -> tuple[Any, Any, Any]:
    """The package particles, its state-space models and its distributions."""
    with peer_imports():
        return tuple(
            importlib.import_module(f"particles{part}")
            for part in ("", ".state_space_models", ".distributions")
        )


def build_filter(law: Any, y: list[Any], particles: int) -> Callable[[], Tensor]:
    """Run of the peer's bootstrap filter of one of its state-space models; its log evidence [1]."""
    package, models, _ = import_particles()
    feynman_kac = models.Bootstrap(ssm=law, data=y)

    def run() -> Tensor:
        smc = package.SMC(fk=feynman_kac, N=particles, resampling="systematic", ESSrmin=1.0)
        smc.run()
        return torch.tensor([float(smc.logLt)])

    return run


def build_volatility(y: np.ndarray, particles: int) -> Callable[[], Tensor]:
    _, models, _ = import_particles()
    return build_filter(models.StochVol(mu=MU, rho=PHI, sigma=SIGMA), list(y), particles)


def build_terrain(module: TerrainModule, y: list[Any], particles: int) -> Callable[[], Tensor]:
    """Flight of one aircraft over the released map."""
    _, models, laws = import_particles()
    east, north = module.takeoff
    start, sd, motion = (v.double().numpy() for v in (module.m0, module.prior_sd, module.motion_sd))

    class Flight(models.StateSpaceModel):  # type: ignore[misc, name-defined]
        """The same laws in the peer's words, on arrays [N, 6]."""

        def PX0(self) -> Any:
            first = start.copy()
            # it weighs its first particles, ours move before they are weighed
            first[:3] += module.delta * first[3:]
            spread = np.sqrt(sd**2 + motion**2)
            spread[:3] = np.sqrt(spread[:3] ** 2 + (module.delta * sd[3:]) ** 2)
            return laws.IndepProd(
                *[laws.Normal(loc=m, scale=s) for m, s in zip(first, spread, strict=True)]
            )

        def PX(self, t: int, before: np.ndarray) -> Any:
            mean = before.copy()
            mean[:, :3] += module.delta * before[:, 3:]
            return laws.IndepProd(*[laws.Normal(loc=mean[:, d], scale=motion[d]) for d in range(6)])

        def PY(self, t: int, before: np.ndarray, x: np.ndarray) -> Any:
            c, d = PER_METRE * x[:, 0], PER_METRE * x[:, 1]
            near, middle = np.exp(-c * c - (d + 1) ** 2), np.exp(-c * c - d * d)
            third = np.exp(-((c + 1) ** 2) + d * d)
            height = (
                x[:, 2] - peaks(c, d, near, middle, third) - hills(*multiples(np.sin(c), np.cos(c)))
            )
            distance = np.sqrt((x[:, 0] - east) ** 2 + (x[:, 1] - north) ** 2)
            return laws.IndepProd(
                *[laws.Normal(loc=h, scale=module.noise_sd) for h in (height, distance)]
            )

    return build_filter(Flight(), y, particles)
