"""Structural series, our compiled Gibbs sweeps of them, and comparisons of their draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from arviz_stats.base import array_stats

from components.series.sequence import Sequence
from runner.execution.rng import Streams
from scripts.benchmarks.workloads import component, train
from scripts.peers.structural_samplers import DF, GUESS, Array

TIMES = 104


CHANNELS, REGRESSORS = 5, 7


BLOCK = 100  # sweeps of a compiled call, whose numbers a core's cache holds


def draw_series(columns: int) -> tuple[Array, Array]:
    """y [T + 1] of unit variance and X [T + 1, columns], standardised over the first T."""
    g = np.random.default_rng(0)
    X = g.standard_normal((TIMES + 1, columns))
    y = np.cumsum(0.1 * g.standard_normal(TIMES + 1)) + 0.4 * g.standard_normal(TIMES + 1)
    y += X[:, :3] @ np.array([0.5, -0.3, 0.12])[: min(columns, 3)]
    X = (X - X[:TIMES].mean(0)) / X[:TIMES].std(0, ddof=1)
    return (y - y[:TIMES].mean()) / y[:TIMES].std(ddof=1), X


def build_problem(y: Array, X: Array, u: Array | None = None) -> Sequence:
    extras: dict[str, Any] = {}
    for name, columns in (("regressor", X), ("input", u)):
        if columns is not None and columns.shape[1]:
            extras[f"{name}s"] = torch.tensor(columns[:TIMES])
            extras[f"{name}_names"] = [f"{name}{j}" for j in range(columns.shape[1])]
    series = torch.tensor(y[:TIMES]).view(1, -1, 1)
    return Sequence("simulated", None, series, None, ["y"], **extras)


def build_ours(y: Array, X: Array, chains: int, size: float | None = 3.0) -> Callable[[int], Array]:
    """n sweeps by the compiled loop, from where those before ended: (σ, level σ, β) [n, C, …]; so
    many columns are expected in, None: all are."""
    series = build_problem(y, X)
    rng = Streams(0)
    blocks = [component("block", "local_level", df=DF, guess=GUESS, upper=None)]
    if X.shape[1]:
        blocks.append(component("block", "regression", expected_size=size, standardise=False))
    model = component(
        "model", "structural", blocks=blocks, upper=None, r2=0.8, df=50.0 if X.shape[1] else 0.01
    )
    gibbs = component("inference", "structural_gibbs", chains=chains)
    state = gibbs.init(model.build(series, rng), series, rng)
    place = state.place

    def run(n: int) -> Array:
        nonlocal place
        rows = []
        for _ in range(n // BLOCK):
            numbers = state.sweeps.numbers(BLOCK, chains, rng.noise, twice=False)
            place, _, draws = state.sweeps.advance(place, numbers)
            rows.append(draws)
        return torch.cat(rows).numpy()

    return run


def fit() -> None:
    """4,000 draws of a level, channels in the state and regressors, by the steps of a run."""
    y, X = draw_series(REGRESSORS)
    u = np.random.default_rng(1).random((TIMES + 1, CHANNELS))
    series = build_problem(y, X, u)
    rng = Streams(0)
    blocks = [
        component("block", "local_level"),
        component("block", "nerlove_arrow", expected_size=2.0),
        component("block", "regression", expected_size=3.0),
    ]
    gibbs = component("inference", "structural_gibbs", chains=4, burn_in=0, thinning=1)
    model = component("model", "structural", blocks=blocks).build(series, rng)
    assert gibbs.posterior(train(gibbs, model, series, rng, 1000)).n_draws == 1000


def bulk_ess(draws: Array) -> float:
    """Bulk ESS of draws [n] of one chain, or [n, C]."""
    return float(array_stats.ess(np.atleast_2d(draws.T), chain_axis=0, draw_axis=1, method="bulk"))


def assert_equal(name: str, ours: Array, theirs: Array) -> None:
    """Means, column by column, within 4 Monte-Carlo errors."""
    for j, (a, b) in enumerate(zip(ours.T, theirs.T, strict=True)):
        error = np.hypot(a.std() / bulk_ess(a) ** 0.5, b.std() / bulk_ess(b) ** 0.5)
        z = (a.mean() - b.mean()) / error
        print(f"{name}, {j}: {a.mean():.5f} and {b.mean():.5f}, z = {z:.2f}")
        assert abs(z) < 4, f"{name}: another posterior"


def draw_level(n: int) -> Array:
    """Draws of both σ of the level without columns, after 1,000 sweeps."""
    level = build_ours(*draw_series(0), 1)
    level(1000)
    return level(n)[:, 0]
