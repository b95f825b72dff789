"""Gibbs sweeps of a structural series (104 weeks, 12 candidates) against bsts-causalimpact (Rust)
and NumPyro's NUTS.

    python -m scripts.bench_structural                       # one JSON line
    python -m scripts.bench_structural --draws 1000

Draws a second with 12 candidates, spike and slab, of one chain and of 32 at once, against the Rust
sampler's; effective draws a second of the level's σ, and draws a second, of a level without
columns, against NUTS, which samples the level's innovations (104 numbers and two scales; warm-up
and compilation are not timed). Sweeps are compiled, ``BLOCK`` of them a call, random numbers
included, and of the kind that the peers have: without the second draws of columns and of standard
deviations that a run's step takes besides. Before a number is printed means of both σ of that level
are asserted to agree with both peers' within 4 Monte-Carlo errors, and with three columns that are
always in those of the level's σ and of β with the Rust sampler's. Its observations' σ is then too
large by (T + p)/T in the square, for it leaves the slab out of their conditional; and where columns
may be out it cannot be the measure of ours at all: the exponent of its Bayes factor has 1/(1 + g)
where g/(1 + g) should stand, so that it leaves out nearly all, whatever the data. Its speed is
taken as it is. Last, what a fit of 4,000 draws takes of a level, five channels in the state and
seven regressors, all of a run's steps: 3 s over its seconds.

Seconds are of the process's own CPU, on one core, runs interleaved; a ratio is the median of those
of runs next to each other."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np
import torch
from arviz_stats.base import array_stats

from components.series.sequence import Sequence
from runner.execution.rng import Streams
from scripts.peers.installed import peer_imports
from scripts.sbc import component

with peer_imports():
    import jax
    import jax.numpy as jnp
    import numpyro
    from causal_impact._core import run_gibbs_sampler
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

Array = np.ndarray[Any, np.dtype[Any]]
TIMES, COLUMNS, BLOCK = 104, 12, 50
CHANNELS, REGRESSORS = 5, 7
SIZE = 3.0  # columns that are expected in
DF, GUESS = 32.0, 0.1  # of the level's σ: the Rust sampler's prior
GOALS = {
    "draws of one chain against bsts-causalimpact": 0.5,
    "draws of 32 chains against bsts-causalimpact": 1.0,
    "ESS of level σ against NUTS": 10.0,
    "draws against NUTS": 100.0,
    "4,000 draws with channels in 3 s": 1.0,
}


def data(columns: int) -> tuple[Array, Array]:
    """y [T + 1] of unit variance and X [T + 1, columns], standardised over the first T."""
    g = np.random.default_rng(0)
    X = g.standard_normal((TIMES + 1, columns))
    y = np.cumsum(0.1 * g.standard_normal(TIMES + 1)) + 0.4 * g.standard_normal(TIMES + 1)
    y += X[:, :3] @ np.array([0.5, -0.3, 0.12])[: min(columns, 3)]
    X = (X - X[:TIMES].mean(0)) / X[:TIMES].std(0, ddof=1)
    return (y - y[:TIMES].mean()) / y[:TIMES].std(ddof=1), X


def problem(y: Array, X: Array, u: Array | None = None) -> Sequence:
    extras: dict[str, Any] = {}
    if X.shape[1]:
        extras = {
            "regressors": torch.tensor(X[:TIMES]),
            "regressor_names": [f"x{j}" for j in range(X.shape[1])],
        }
    if u is not None:
        extras |= {
            "inputs": torch.tensor(u[:TIMES]),
            "input_names": [f"u{j}" for j in range(u.shape[1])],
        }
    return Sequence(
        "simulated", None, torch.tensor(y[:TIMES]).view(1, -1, 1), None, ["y"], **extras
    )


def ours(y: Array, X: Array, chains: int, size: float | None = SIZE) -> Callable[[int], Array]:
    """n sweeps by the compiled loop, from where those before ended: (σ, level σ, β) [n, C, …]; so
    many columns are expected in, None: all are."""
    series, rng = problem(y, X), Streams(0)
    blocks = [component("block", "local_level", df=DF, guess=GUESS, upper=None)]
    if X.shape[1]:
        blocks.append(component("block", "regression", expected_size=size, standardise=False))
    model = component(
        "model", "structural", blocks=blocks, upper=None, r2=0.8, df=50.0 if X.shape[1] else 0.01
    )
    state = component("inference", "structural_gibbs", chains=chains).init(
        model.build(series, rng), series, rng
    )
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


def rust(y: Array, X: Array, chains: int, size: float = SIZE) -> Callable[[int], Array]:
    """(σ, level σ, β) [n, …]."""
    columns = np.ascontiguousarray(X.T) if X.shape[1] else np.zeros((0, TIMES + 1))
    seed = 0

    def run(n: int) -> Array:
        nonlocal seed
        seed += 1
        keys = {
            "prior_level_sd": GUESS,
            "expected_model_size": size,
            "nwarmup": 0,
            "nchains": chains,
            "seed": seed,
        }
        fit = run_gibbs_sampler(y=y, x=columns, pre_end=TIMES, niter=n, **keys)
        beta = np.array(fit.beta).reshape(len(fit.sigma_obs), -1)
        return np.column_stack([fit.sigma_obs, fit.sigma_level, beta])

    return run


def nuts(y: Array) -> Callable[[int], Array]:
    """NumPyro's NUTS, warmed up once and compiled: the random walk by its innovations in units of
    σ."""
    numpyro.enable_x64()
    observations = jnp.asarray(y[:TIMES])

    def model() -> None:
        level = numpyro.sample("level", dist.Gamma(DF / 2, DF * GUESS**2 / 2)) ** -0.5
        noise = numpyro.sample("noise", dist.Gamma(0.005, 0.005)) ** -0.5
        z = numpyro.sample("z", dist.Normal(0, 1).expand([TIMES - 1]).to_event(1))
        first = numpyro.sample("first", dist.Normal(observations[0], 1.0))
        path = first + jnp.concatenate([jnp.zeros(1), jnp.cumsum(level * z)])
        numpyro.sample("y", dist.Normal(path, noise).to_event(1), obs=observations)

    mcmc = MCMC(NUTS(model), num_warmup=1000, num_samples=1000, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0))
    mcmc.post_warmup_state = mcmc.last_state
    mcmc.run(jax.random.PRNGKey(1))  # compiled without a warm-up now

    def run(n: int) -> Array:
        mcmc.post_warmup_state = mcmc.last_state
        mcmc.run(mcmc.post_warmup_state.rng_key)
        samples = mcmc.get_samples()
        return np.column_stack(
            [np.asarray(samples["noise"]) ** -0.5, np.asarray(samples["level"]) ** -0.5]
        )

    return run


def fitted() -> None:
    """4,000 draws of a level, channels in the state and regressors, by the steps of a run."""
    y, X = data(REGRESSORS)
    u = np.random.default_rng(1).random((TIMES + 1, CHANNELS))
    series, rng = problem(y, X, u), Streams(0)
    blocks = [
        component("block", "local_level"),
        component("block", "nerlove_arrow", expected_size=2.0),
        component("block", "regression", expected_size=3.0),
    ]
    gibbs = component("inference", "structural_gibbs", chains=4, burn_in=0, thinning=1)
    state = gibbs.init(
        component("model", "structural", blocks=blocks).build(series, rng), series, rng
    )
    for _, batch in series.batches("series", rng, 0, 1000):
        state, _ = gibbs.step(state, batch, rng)
    assert gibbs.posterior(state).n_draws == 1000


def ess(draws: Array) -> float:
    """Bulk ESS of draws [n] of one chain, or [n, C]."""
    return float(array_stats.ess(np.atleast_2d(draws.T), chain_axis=0, draw_axis=1, method="bulk"))


def timed(run: Callable[[int], Array], n: int) -> tuple[Array, float]:
    start = time.process_time()
    result = run(n)
    return result, time.process_time() - start


def agree(name: str, one: Array, other: Array) -> None:
    """Means, column by column, within 4 Monte-Carlo errors."""
    for j in range(one.shape[1]):
        a, b = one[:, j], other[:, j]
        error = np.hypot(a.std() / ess(a) ** 0.5, b.std() / ess(b) ** 0.5)
        z = (a.mean() - b.mean()) / error
        print(f"{name}, {j}: {a.mean():.5f} and {b.mean():.5f}, z = {z:.2f}", file=sys.stderr)
        assert abs(z) < 4, f"{name}: another posterior"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=4000, help="of one chain, each run")
    parser.add_argument("--repeats", type=int, default=5, help="runs next to each other")
    options = parser.parse_args()
    torch.set_num_threads(1)
    bare, n = data(0), options.draws
    level, level_rust, level_nuts = ours(*bare, 1), rust(*bare, 1), nuts(bare[0])
    for run in (level, level_rust, level_nuts):
        run(1000)
    one = level(5 * n)[:, 0]
    agree("bsts-causalimpact", one, level_rust(5 * n)[500:])
    agree("NUTS", one, np.concatenate([level_nuts(1000) for _ in range(4)]))
    few = data(3)
    inside, inside_rust = (draw(2 * n) for draw in (ours(*few, 1, None), rust(*few, 1, 3.0)))
    agree("bsts-causalimpact, three columns in", inside[500:, 0, 1:], inside_rust[500:, 1:])
    wide = data(COLUMNS)
    single, single_rust, many, many_rust = (
        ours(*wide, 1),
        rust(*wide, 1),
        ours(*wide, 32),
        rust(*wide, 32),
    )
    for run in (single, single_rust, many, many_rust):
        run(100)
    fitted()
    ratios: dict[str, list[float]] = {name: [] for name in GOALS}
    for _ in range(options.repeats):
        seconds = [timed(run, n)[1] for run in (single, single_rust)]
        ratios["draws of one chain against bsts-causalimpact"].append(seconds[1] / seconds[0])
        seconds = [timed(run, max(BLOCK, n // 32 // BLOCK * BLOCK))[1] for run in (many, many_rust)]
        ratios["draws of 32 chains against bsts-causalimpact"].append(seconds[1] / seconds[0])
        (mine, our_seconds), (theirs, took) = timed(level, n), timed(level_nuts, 1000)
        ratios["ESS of level σ against NUTS"].append(
            ess(mine[:, 0, 1]) / our_seconds / (ess(theirs[:, 1]) / took)
        )
        ratios["draws against NUTS"].append(n / our_seconds / (1000 / took))
        start = time.process_time()
        fitted()
        ratios["4,000 draws with channels in 3 s"].append(3 / (time.process_time() - start))
    summaries = {
        name: [statistics.median(values), min(values), max(values)]
        for name, values in ratios.items()
    }
    report = {
        "benchmark": "structural",
        "peer": "bsts-causalimpact, numpyro",
        "ratios": summaries,
        "goals": GOALS,
    }
    print(json.dumps(report, ensure_ascii=False))


if __name__ == "__main__":
    main()
