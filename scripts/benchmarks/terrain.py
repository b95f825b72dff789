"""Bootstrap filters of terrain navigation, 50 replicates in one run, against the package particles.

    python -m scripts.benchmarks terrain --times 100 --repeats 3

Aircraft over the released map with 3,000 particles each; the peer has one replicate, and seconds
are of one.  All fly the same flight, so that log evidences compare."""

from __future__ import annotations

from argparse import Namespace

import torch

from components.series.models.tan import TerrainModule
from scripts.benchmarks.harness import Report
from scripts.benchmarks.particle_runs import build_filter, time_equal
from scripts.benchmarks.workloads import load
from scripts.peers.particles_filters import build_terrain

FLIGHTS, PARTICLES = 50, 3000
CASE = "terrain, 50 replicates at once"


def measure(options: Namespace, report: Report) -> None:
    problem = load("tan", FLIGHTS, dtype=torch.float32, n_steps=options.times)
    problem.observations[:] = problem.observations[0].clone()
    module = TerrainModule(problem.system, compiled=True)
    flight = [row[None] for row in problem.observations[0].double().numpy()]
    ways = {
        "particles": build_terrain(module, flight, PARTICLES),
        "50 at once": build_filter(module, problem, PARTICLES),
    }
    seconds = time_equal(ways, options.repeats, report)
    report.compare(CASE, seconds["50 at once"] / FLIGHTS, seconds["particles"])
