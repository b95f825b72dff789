"""Benchmarks of bootstrap filters."""

from __future__ import annotations

import importlib
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.maths.compiled.elevation_map import PER_METRE, hills, multiples, peaks
from components.series.models.stochastic_volatility import VolatilityModule
from components.series.models.tan import TerrainModule
from components.series.sequence import Sequence
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report, Seconds, Way
from scripts.benchmarks.workloads import component, load, train
from scripts.peers.installed import AbsentPeer, peer_imports

MU = -1.0
PHI = 0.95
SIGMA = 0.3
AT_ONCE = "100 replicates together"
FLIGHTS = 50
PARTICLES = 3000
CASE = "terrain, 50 replicates together"


def import_particles() -> tuple[Any, Any, Any]:
    """Import the package particles, its state-space models and its distributions."""
    with peer_imports():
        return tuple(
            importlib.import_module(f"particles{part}")
            for part in ("", ".state_space_models", ".distributions")
        )


def build_peer_filter(law: Any, y: list[Any], particles: int) -> Callable[[], Tensor]:
    """Function that runs the peer's bootstrap filter of a state-space model; returns the log
    evidence [1]."""
    package, models, _ = import_particles()
    feynman_kac = models.Bootstrap(ssm=law, data=y)

    def run() -> Tensor:
        smc = package.SMC(fk=feynman_kac, N=particles, resampling="systematic", ESSrmin=1.0)
        smc.run()
        return torch.tensor([float(smc.logLt)])

    return run


def build_peer(y: np.ndarray, particles: int) -> Callable[[], Tensor]:
    _, models, _ = import_particles()
    return build_peer_filter(models.StochVol(mu=MU, rho=PHI, sigma=SIGMA), list(y), particles)


def build_peer_terrain(module: TerrainModule, y: list[Any], particles: int) -> Callable[[], Tensor]:
    """The peer's filter for the flight of one aircraft over the published map."""
    _, models, laws = import_particles()
    east, north = module.takeoff
    start, sd, motion = (v.double().numpy() for v in (module.m0, module.prior_sd, module.motion_sd))

    class Flight(models.StateSpaceModel):  # type: ignore[misc, name-defined]
        """The same distributions in the peer's API, for arrays [N, 6]."""

        def PX0(self) -> Any:
            first = start.copy()
            # the peer weights its first particles, while ours move before they are weighted
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
            c = PER_METRE * x[:, 0]
            d = PER_METRE * x[:, 1]
            near = np.exp(-c * c - (d + 1) ** 2)
            middle = np.exp(-c * c - d * d)
            third = np.exp(-((c + 1) ** 2) + d * d)
            height = (
                x[:, 2] - peaks(c, d, near, middle, third) - hills(*multiples(np.sin(c), np.cos(c)))
            )
            distance = np.sqrt((x[:, 0] - east) ** 2 + (x[:, 1] - north) ** 2)
            return laws.IndepProd(
                *[laws.Normal(loc=h, scale=module.noise_sd) for h in (height, distance)]
            )

    return build_peer_filter(Flight(), y, particles)


def draw_returns(times: int) -> np.ndarray:
    """Simulated returns [T] of the stochastic-volatility model."""
    generator = np.random.default_rng(0)
    x = MU + SIGMA / np.sqrt(1 - PHI**2) * generator.standard_normal()
    observations = []
    for _ in range(times):
        x = MU + PHI * (x - MU) + SIGMA * generator.standard_normal()
        observations.append(np.exp(x / 2) * generator.standard_normal())
    return np.array(observations)


def build_filter(model: Any, problem: Sequence, particles: int) -> Way:
    """Function that runs all replicates and returns their log evidences [R]."""
    inference = component("inference", "bootstrap_filter", particles=particles)
    seeds = count()

    def run() -> Tensor:
        times = problem.observations.shape[1]
        state = train(inference, model, problem, Streams(next(seeds)), times)
        return inference.posterior(state).log_normaliser

    return run


def build_volatility(y: np.ndarray, particles: int, replicates: int, dtype: str) -> Way:
    """Filter of stochastic volatility in which all replicates have the returns y [T]."""
    series = torch.from_numpy(y).to(getattr(torch, dtype)).view(1, -1, 1)
    observations = series.expand(replicates, -1, -1).contiguous()
    problem = Sequence("volatility", None, observations, None, ["x"])
    return build_filter(VolatilityModule(MU, PHI, SIGMA, observations), problem, particles)


def time_equal(ways: dict[str, Way], repeats: int, report: Report) -> Seconds:
    """Time all ways and assert that their mean log evidences agree."""
    evidences: dict[str, list[Any]] = {name: [] for name in ways}

    def inspect(name: str, evidence: Tensor) -> None:
        evidences[name] += evidence.tolist()

    seconds = report.time(ways, repeats, inspect=inspect)
    means = [float(np.mean(values)) for values in evidences.values()]
    assert max(means) - min(means) < 0.25, f"log evidences differ: {means}"
    return seconds


def measure_volatility(options: Namespace, report: Report) -> None:
    """Bootstrap filters of stochastic volatility against the package particles, and many replicates.

        python -m scripts.benchmarks filters --particles 100000 --repeats 3

    All filters resample systematically at every step; ours also records means, variances and quantiles.
    100 replicates are run together and sequentially.  Log evidences must agree within Monte-Carlo
    error.  The peer requires an older numpy than ours, but also works with ours."""
    y = draw_returns(options.times)
    single = build_volatility(y, 1000, 1, "float32")
    ways = {
        "at once": build_volatility(y, 1000, 100, "float32"),
        "one by one": lambda: torch.cat([single() for _ in range(100)]),
    }
    seconds = time_equal(ways, options.repeats, report)
    report.compare(AT_ONCE, seconds["at once"], seconds["one by one"])
    with suppress(AbsentPeer):
        for n in options.particles:
            ways = {dtype: build_volatility(y, n, 1, dtype) for dtype in ("float32", "float64")}
            ways["particles"] = build_peer(y, n)
            seconds = time_equal(ways, options.repeats, report)
            for dtype, goal in (("float32", 3.0), ("float64", 1.2)):
                report.goals[f"N = {n:,}, {dtype}"] = goal
                report.compare(f"N = {n:,}, {dtype}", seconds[dtype], seconds["particles"])


def measure_terrain(options: Namespace, report: Report) -> None:
    """Bootstrap filters of terrain navigation, 50 replicates in one run, against the package particles.

        python -m scripts.benchmarks terrain --times 100 --repeats 3

    Aircraft over the published map with 3,000 particles each; the peer has one replicate, and times are
    per replicate.  All have the same flight, so that log evidences are comparable."""
    problem = load("tan", FLIGHTS, dtype=torch.float32, n_steps=options.times)
    problem.observations[:] = problem.observations[0].clone()
    module = TerrainModule(problem.system, compiled=True)
    flight = [row[None] for row in problem.observations[0].double().numpy()]
    ways = {
        "particles": build_peer_terrain(module, flight, PARTICLES),
        "50 at once": build_filter(module, problem, PARTICLES),
    }
    seconds = time_equal(ways, options.repeats, report)
    report.compare(CASE, seconds["50 at once"] / FLIGHTS, seconds["particles"])
