"""Benchmark of Gibbs sweeps of structural series."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import torch
from arviz_stats.base import array_stats

from components.series.sequence import Sequence
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report
from scripts.benchmarks.workloads import component, train
from scripts.peers.installed import AbsentPeer, peer_imports

Array = np.ndarray[Any, np.dtype[Any]]
TIMES = 104
# prior of the Rust sampler for σ of the level
DF = 32.0
GUESS = 0.1
CHANNELS = 5
REGRESSORS = 7
BLOCK = 100  # sweeps per compiled call; their numbers fit into a core's cache
ONE = "draws of one chain against bsts-causalimpact"
MANY = "draws of 32 chains against bsts-causalimpact"
FIT = "4,000 draws with channels in 3 s"


def build_rust(y: Array, X: Array, chains: int) -> Callable[[int], Array]:
    """(σ, level σ, β) [n, …]."""
    with peer_imports():
        from causal_impact._core import run_gibbs_sampler

    columns = np.ascontiguousarray(X.T) if X.shape[1] else np.zeros((0, TIMES + 1))
    seed = 0

    def run(n: int) -> Array:
        nonlocal seed
        seed += 1
        keys = {
            "prior_level_sd": GUESS,
            "expected_model_size": 3.0,
            "nwarmup": 0,
            "nchains": chains,
            "seed": seed,
        }
        fit = run_gibbs_sampler(y=y, x=columns, pre_end=TIMES, niter=n, **keys)
        beta = np.array(fit.beta).reshape(len(fit.sigma_obs), -1)
        return np.column_stack([fit.sigma_obs, fit.sigma_level, beta])

    return run


def draw_series(columns: int) -> tuple[Array, Array]:
    """Simulated y [T + 1] with unit variance and X [T + 1, columns], standardised over the first T."""
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
    """Function that continues the chains by n sweeps of the compiled loop: (σ, level σ, β) [n, C, …].

    ``size`` is the expected number of included columns; None for all."""
    series = build_problem(y, X)
    rng = Streams(0)
    blocks = [component("block", "local_level", df=DF, guess=GUESS, upper=None)]
    if X.shape[1]:
        blocks.append(component("block", "regression", expected_size=size, standardise=False))
    model = component(
        "model", "structural", blocks=blocks, upper=None, r2=0.8, df=50.0 if X.shape[1] else 0.01
    )
    gibbs = component("inference", "structural_gibbs", chains=chains, scheme="gibbs")
    state = gibbs.init(model.build(series, rng), series, rng)
    place = state.place

    def run(n: int) -> Array:
        nonlocal place
        rows = []
        for _ in range(n // BLOCK):
            place, _, draws = state.sweeps.advance(
                place, state.sweeps.numbers(BLOCK, chains, rng.noise, twice=False)
            )
            rows.append(draws)
        return torch.cat(rows).numpy()

    return run


def fit() -> None:
    """Run 4,000 draws of a model with level, channels in the state, and regressors."""
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
    """Bulk ESS of draws [n] of one chain, or [n, C] of several."""
    return float(array_stats.ess(np.atleast_2d(draws.T), chain_axis=0, draw_axis=1, method="bulk"))


def assert_equal(name: str, ours: Array, theirs: Array) -> None:
    """Assert that the means of all columns agree within 4 Monte-Carlo errors."""
    for j, (a, b) in enumerate(zip(ours.T, theirs.T, strict=True)):
        error = np.hypot(a.std() / bulk_ess(a) ** 0.5, b.std() / bulk_ess(b) ** 0.5)
        z = (a.mean() - b.mean()) / error
        print(f"{name}, {j}: {a.mean():.5f} and {b.mean():.5f}, z = {z:.2f}")
        assert abs(z) < 4, f"{name}: posteriors differ"


def draw_level(n: int) -> Array:
    """Draws of both σ of the model with a level and no columns, after 1,000 sweeps."""
    level = build_ours(*draw_series(0), 1)
    level(1000)
    return level(n)[:, 0]


def compare_with_rust(n: int, repeats: int, report: Report) -> None:
    bare, few, wide = (draw_series(columns) for columns in (0, 3, 12))
    level = build_rust(*bare, 1)
    level(1000)
    assert_equal("bsts-causalimpact", draw_level(5 * n), level(5 * n)[500:])
    ours = build_ours(*few, 1, None)(2 * n)
    theirs = build_rust(*few, 1)(2 * n)
    assert_equal("bsts-causalimpact, columns", ours[500:, 0, 1:], theirs[500:, 1:])
    for case, chains in ((ONE, 1), (MANY, 32)):
        draws = n if chains == 1 else max(BLOCK, n // 32 // BLOCK * BLOCK)
        ways = {"ours": build_ours(*wide, chains), "Rust": build_rust(*wide, chains)}
        for way in ways.values():
            way(100)
        ways = {name: partial(way, draws) for name, way in ways.items()}
        seconds = report.time(ways, repeats, warmups=0)
        report.compare(case, seconds["ours"], seconds["Rust"])


def measure(options: Namespace, report: Report) -> None:
    """Gibbs sweeps of a structural series against bsts-causalimpact (Rust).

    The comparison covers draws per second with spike and slab, for one chain and for 32 together.
    Means of both σ of the level, and of β with three columns always included, must agree within 4
    Monte-Carlo errors.  With candidate columns only the speed is compared, not the posterior,
    because the peer's Bayes factor has 1/(1 + g) instead of g/(1 + g).  The last case is a fit of
    4,000 draws with a level, five channels and seven regressors.
    """
    with suppress(AbsentPeer):
        compare_with_rust(options.draws, options.repeats, report)
    report.record(FIT, 3 / report.time({FIT: fit}, options.repeats)[FIT])
