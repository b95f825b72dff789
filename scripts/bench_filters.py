"""Bootstrap filters of stochastic volatility and of terrain navigation against the package
particles, and replicates at once against one by one.

    python -m scripts.bench_filters                          # one JSON line
    python -m scripts.bench_filters --particles 100000 --repeats 3
    python -m scripts.bench_filters --costs                  # a CSV: seconds against N, T and R, no peer

All filters resample systematically at every step; ours also write down means, variances and
quantiles, which the peer's do not.  The flight's peer has one replicate, of which ours has 50 at
once: seconds are of one.  Log evidences are asserted to agree within Monte-Carlo error before a
number is printed.  Runs are interleaved, seconds are of the process's own CPU, on one thread; the
ratio is the median of those of runs next to each other.  The peer asks for an older numpy than
ours, with which it runs all the same: make bench-peers installs it without what it asks for."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import yaml
from torch import Tensor

import conf
from components import registry
from components.contracts.capabilities import StateSpace
from components.contracts.roles import Setting
from components.maths.compiled.elevation_map import PER_METRE, hills, multiples, peaks
from components.series.models.stochastic_volatility import VolatilityModule
from components.series.models.tan import TerrainModule
from components.series.sequence import Sequence
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams
from scripts.peers.installed import peer_imports

GOALS = {
    "float32": 3.0,
    "float64": 1.2,
    "100 replicates at once": 10.0,
    "terrain, 50 replicates at once": 3.0,
}
MU, PHI, SIGMA = -1.0, 0.95, 0.3
REPLICATES, EACH = 100, 1000
FLIGHTS, ON_A_FLIGHT = 50, 3000


def component(role: str, name: str, **keys: Any) -> Any:
    """A component with the defaults of its YAML, but for ``keys``."""
    with open(os.path.join(os.path.dirname(str(conf.__file__)), role, f"{name}.yaml")) as file:
        return registry.get(role, name).model_validate(yaml.safe_load(file) | keys)


def returns(times: int) -> np.ndarray:
    """A series of returns [T] drawn from the model."""
    generator = np.random.default_rng(0)
    x, observations = MU + SIGMA / np.sqrt(1 - PHI**2) * generator.standard_normal(), []
    for _ in range(times):
        x = MU + PHI * (x - MU) + SIGMA * generator.standard_normal()
        observations.append(np.exp(x / 2) * generator.standard_normal())
    return np.array(observations)


def filtered(model: StateSpace, problem: Sequence, particles: int) -> Callable[[], Tensor]:
    """A run of all replicates, which hands back their log evidences [R]."""
    inference = component("inference", "bootstrap_filter", particles=particles)
    seeds = iter(range(10**9))

    def run() -> Tensor:
        rng = Streams(next(seeds))
        state = inference.init(model, problem, rng)
        for _, batch in problem.batches("observation", rng, 0, problem.observations.shape[1]):
            state, _ = inference.step(state, batch, rng)
        log_evidence: Tensor = inference.posterior(state).log_normaliser
        return log_evidence

    return run


def ours(
    y: np.ndarray, particles: int, replicates: int, dtype: torch.dtype
) -> Callable[[], Tensor]:
    """Runs of stochastic volatility, all on the same returns y [T]."""
    observations = (
        torch.from_numpy(y).to(dtype).view(1, -1, 1).expand(replicates, -1, -1).contiguous()
    )
    problem = Sequence("volatility", None, observations, None, ["x"])
    return filtered(VolatilityModule(MU, PHI, SIGMA, observations), problem, particles)


def peer() -> tuple[Any, Any, Any]:
    """The package particles, its state-space models and its distributions."""
    with peer_imports():
        return tuple(
            importlib.import_module(f"particles{part}")
            for part in ("", ".state_space_models", ".distributions")
        )


def theirs(law: Any, y: list[Any], particles: int) -> Callable[[], Tensor]:
    """A run of the peer's bootstrap filter of one of its state-space models."""
    particles_, models, _ = peer()
    weighed = models.Bootstrap(ssm=law, data=y)

    def run() -> Tensor:
        smc = particles_.SMC(fk=weighed, N=particles, resampling="systematic", ESSrmin=1.0)
        smc.run()
        return torch.tensor([float(smc.logLt)])

    return run


def volatility(y: np.ndarray, particles: int) -> Callable[[], Tensor]:
    return theirs(peer()[1].StochVol(mu=MU, rho=PHI, sigma=SIGMA), list(y), particles)


def terrain(times: int) -> dict[str, Callable[[], Tensor]]:
    """Aircraft over the released map, 50 at once by ours, the first of them by the peer."""
    setting = Setting(Path(), torch.device("cpu"), torch.float32, FLIGHTS, offline=True)
    problem = component("dataset", "tan", n_steps=times).load(Streams(0), setting)
    problem.observations[:] = problem.observations[
        0
    ].clone()  # the same flight, of which the evidence can be held beside
    module = TerrainModule(problem.system, compiled=True)
    _, models, laws = peer()
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

    y = [row[None] for row in problem.observations[0].double().numpy()]
    return {
        "particles": theirs(Flight(), y, ON_A_FLIGHT),
        "50 at once": filtered(module, problem, ON_A_FLIGHT),
    }


def clocked(run: Callable[[], Tensor]) -> tuple[float, Tensor]:
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def interleaved(ways: dict[str, Callable[[], Tensor]], repeats: int) -> dict[str, list[float]]:
    """Seconds of every run; log evidences of all ways are asserted to be the same in the mean."""
    durations: dict[str, list[float]] = {name: [] for name in ways}
    evidences: dict[str, list[Tensor]] = {name: [] for name in ways}
    for _ in range(repeats + 1):  # the first warms up
        for name, run in ways.items():
            seconds, evidence = clocked(run)
            durations[name].append(seconds)
            evidences[name].append(evidence.double())
    means = {name: float(torch.cat(values).mean()) for name, values in evidences.items()}
    assert max(means.values()) - min(means.values()) < 0.25, f"log evidences differ: {means}"
    print("log evidence: " + ", ".join(f"{name} {value:.3f}" for name, value in means.items()))
    for name, values in durations.items():
        print(f"{name:34s} {statistics.median(values[1:]):9.3f} s", flush=True)
    return {name: values[1:] for name, values in durations.items()}


def ratio(peer: list[float], mine: list[float]) -> list[float]:
    pairs = np.array(peer) / np.array(mine)
    return [round(float(v), 3) for v in np.quantile(pairs, (0.5, 0.25, 0.75))]


def costs() -> None:
    """Seconds of the bootstrap filter where one of N, T and R grows, float32."""
    print("particles,times,replicates,seconds,ns a particle and step")
    sizes = [(n, 100, 1) for n in (100, 1000, 10_000, 100_000, 1_000_000)]
    sizes += [(1000, t, 1) for t in (10, 1000)] + [(1000, 100, r) for r in (10, 100)]
    for n, t, r in sizes:
        run = ours(returns(t), n, r, torch.float32)
        run()
        seconds = min(clocked(run)[0] for _ in range(2))
        print(f"{n},{t},{r},{seconds:.4f},{seconds / (n * t * r) * 1e9:.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--particles", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--costs", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    if arguments.costs:
        costs()
        return
    y, ratios, goals = returns(arguments.times), {}, {}
    for n in arguments.particles:
        ways = {"particles": volatility(y, n)}
        for name, dtype in (("float32", torch.float32), ("float64", torch.float64)):
            ways[name] = ours(y, n, 1, dtype)
        durations = interleaved(ways, arguments.repeats)
        for name in ("float32", "float64"):
            ratios[f"N = {n:,}, {name}"] = ratio(durations["particles"], durations[name])
            goals[f"N = {n:,}, {name}"] = GOALS[name]
    single_run = ours(y, EACH, 1, torch.float32)
    durations = interleaved(
        {
            "at once": ours(y, EACH, REPLICATES, torch.float32),
            "one by one": lambda: torch.cat([single_run() for _ in range(REPLICATES)]),
        },
        arguments.repeats,
    )
    ratios["100 replicates at once"] = ratio(durations["one by one"], durations["at once"])
    goals["100 replicates at once"] = GOALS["100 replicates at once"]
    durations = interleaved(terrain(arguments.times), arguments.repeats)
    ratios["terrain, 50 replicates at once"] = ratio(
        durations["particles"], [s / FLIGHTS for s in durations["50 at once"]]
    )
    goals["terrain, 50 replicates at once"] = GOALS["terrain, 50 replicates at once"]
    print(
        json.dumps({"benchmark": "filters", "peer": "particles", "ratios": ratios, "goals": goals})
    )


if __name__ == "__main__":
    main()
