"""Runs of our bootstrap filter that several benchmarks time."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.series.models.stochastic_volatility import VolatilityModule
from components.series.sequence import Sequence
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report, Seconds, Way
from scripts.benchmarks.workloads import component, train
from scripts.peers.particles_filters import MU, PHI, SIGMA


def draw_returns(times: int) -> np.ndarray:
    """Series of returns [T] drawn from the model of stochastic volatility."""
    generator = np.random.default_rng(0)
    x = MU + SIGMA / np.sqrt(1 - PHI**2) * generator.standard_normal()
    observations = []
    for _ in range(times):
        x = MU + PHI * (x - MU) + SIGMA * generator.standard_normal()
        observations.append(np.exp(x / 2) * generator.standard_normal())
    return np.array(observations)


def build_filter(model: Any, problem: Sequence, particles: int) -> Way:
    """Run of all replicates, which returns their log evidences [R]."""
    inference = component("inference", "bootstrap_filter", particles=particles)
    seeds = count()

    def run() -> Tensor:
        times = problem.observations.shape[1]
        state = train(inference, model, problem, Streams(next(seeds)), times)
        return inference.posterior(state).log_normaliser

    return run


def build_volatility(y: np.ndarray, particles: int, replicates: int, dtype: str) -> Way:
    """Run of stochastic volatility in which all replicates have the returns y [T]."""
    series = torch.from_numpy(y).to(getattr(torch, dtype)).view(1, -1, 1)
    observations = series.expand(replicates, -1, -1).contiguous()
    problem = Sequence("volatility", None, observations, None, ["x"])
    return build_filter(VolatilityModule(MU, PHI, SIGMA, observations), problem, particles)


def time_equal(ways: dict[str, Way], repeats: int, report: Report) -> Seconds:
    """Seconds of all ways, which must have the same mean log evidence."""
    evidences: dict[str, list[Any]] = {name: [] for name in ways}

    def inspect(name: str, evidence: Tensor) -> None:
        evidences[name] += evidence.tolist()

    seconds = report.time(ways, repeats, inspect=inspect)
    means = [float(np.mean(values)) for values in evidences.values()]
    assert max(means) - min(means) < 0.25, f"log evidences differ: {means}"
    return seconds
