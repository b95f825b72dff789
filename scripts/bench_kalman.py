"""The Kalman filter of 100 series at once (Wiener velocity, T = 1,000, float64), against filterpy's
and dynamax's.

    python -m scripts.bench_kalman                      # one JSON line
    python -m scripts.bench_kalman --series 20 --times 200

Ours twice: ``steps``, what a run with inference=kalman does, one observation after the other with
all that it writes down; and ``series``, ``filter_series``, which has all observations before it
begins, as both peers have.  filterpy filters one series after the other (``batch_filter``);
dynamax's filter is mapped over the series and compiled once, which is not timed. Means, covariances
and log evidence are asserted to agree before a number is printed.  Runs are interleaved, seconds
are of the process's own CPU, on one thread; the ratio is the median of those of runs next to each
other."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np
import torch
import yaml

import conf
from components import registry
from components.contracts.roles import Setting
from components.series.gaussian_filtering.kalman_series import FilteredSeries, filter_series
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.posteriors.filtered import Filtered
from components.series.sequence import Sequence
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams
from scripts.peers.installed import peer_imports

with peer_imports():
    import jax
    from dynamax.linear_gaussian_ssm import lgssm_filter
    from dynamax.linear_gaussian_ssm.inference import make_lgssm_params
    from filterpy.kalman import KalmanFilter

GOALS = {
    "steps against filterpy": 5.0,
    "series against filterpy": 5.0,
    "series against dynamax": 0.9,
}
SLOW = 3  # runs of filterpy, of which one takes seconds


def component(role: str, name: str, **keys: Any) -> Any:
    """A component with the defaults of its YAML, but for ``keys``."""
    with open(os.path.join(os.path.dirname(str(conf.__file__)), role, f"{name}.yaml")) as file:
        return registry.get(role, name).model_validate(yaml.safe_load(file) | keys)


def data(series: int, times: int) -> tuple[LinearGaussianModule, Sequence]:
    setting = Setting(Path(), torch.device("cpu"), torch.float64, series)
    problem = component("dataset", "wiener_velocity", n_steps=times).load(Streams(0), setting)
    return LinearGaussianModule(problem.system), problem


def steps(model: LinearGaussianModule, problem: Sequence) -> Callable[[], Filtered]:
    """What a run does, without what stands beside its loop."""
    kalman, rng = component("inference", "kalman"), Streams(0)

    def run() -> Filtered:
        state = kalman.init(model, problem, rng)
        for _, batch in problem.batches("observation", rng, 0, problem.observations.shape[1]):
            state, _ = kalman.step(state, batch, rng)
        return kalman.posterior(state)

    return run


def in_filterpy(
    model: LinearGaussianModule, problem: Sequence
) -> Callable[[], list[tuple[np.ndarray, np.ndarray]]]:
    """Means [T, dx] and covariances [T, dx, dx] of each series."""
    A, Q, H, Sigma, m0, P0 = (
        m.numpy() for m in (model.A, model.Q, model.H, model.Sigma, model.m0, model.P0)
    )
    observations = problem.observations.numpy()

    def run() -> list[tuple[np.ndarray, np.ndarray]]:
        moments = []
        for y in observations:
            filter = KalmanFilter(dim_x=len(A), dim_z=len(H))
            filter.x, filter.P, filter.F, filter.Q, filter.H, filter.R = (
                m0.copy(),
                P0.copy(),
                A,
                Q,
                H,
                Sigma,
            )
            means, covariances, *_ = filter.batch_filter(y)
            moments.append((means, covariances))
        return moments

    return run


def in_dynamax(model: LinearGaussianModule, problem: Sequence) -> Callable[[], Any]:
    """Its posterior of all series; its first state is that of the first observation."""
    jax.config.update("jax_enable_x64", True)
    m1, P1 = model.A @ model.m0, model.A @ model.P0 @ model.A.T + model.Q
    matrices = (m1, P1, model.A, model.Q, model.H, model.Sigma)
    params = make_lgssm_params(*(jax.numpy.array(m.numpy()) for m in matrices))
    compiled = jax.jit(jax.vmap(lambda y: lgssm_filter(params, y)))
    observations = jax.numpy.array(problem.observations.numpy())
    return lambda: jax.block_until_ready(compiled(observations))


def check(
    found: Filtered,
    whole: FilteredSeries,
    python: list[tuple[np.ndarray, np.ndarray]],
    compiled: Any,
) -> None:
    """All four say the same; dynamax adds 1e-9 to what it factorises."""
    mean, P = whole.mean.transpose(0, 1).numpy(), whole.P.numpy()
    pairs = {
        "steps: means": (found.mean.numpy(), mean, 1e-9),
        "steps: log evidence": (found.log_normaliser.numpy(), whole.log_evidence.numpy(), 1e-6),
        "filterpy: means": (np.stack([m for m, _ in python]), mean, 1e-7),
        "filterpy: covariances": (python[0][1], P, 1e-9),
        "dynamax: means": (np.asarray(compiled.filtered_means), mean, 1e-7),
        "dynamax: covariances": (np.asarray(compiled.filtered_covariances[0]), P, 1e-7),
        "dynamax: log evidence": (
            np.asarray(compiled.marginal_loglik),
            whole.log_evidence.numpy(),
            1e-5,
        ),
    }
    for name, (a, b, most) in pairs.items():
        difference = float(np.abs(a - b).max())
        assert difference < most, f"{name} differ by {difference:.1e}"
        print(f"{name:24s} the same within {difference:.0e}")


def clocked(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return (time.process_time() - start) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--series", type=int, default=100)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=30, help="timed runs of all but filterpy")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    model, problem = data(arguments.series, arguments.times)
    observations = problem.observations
    ways: dict[str, Callable[[], Any]] = {
        "steps": steps(model, problem),
        "series": lambda: filter_series(model, observations),
        "dynamax": in_dynamax(model, problem),
        "filterpy": in_filterpy(model, problem),
    }
    check(ways["steps"](), ways["series"](), ways["filterpy"](), ways["dynamax"]())
    durations: dict[str, list[float]] = {name: [] for name in ways}
    for name in ("steps", "series", "dynamax"):
        for _ in range(3):
            ways[name]()
    for repeat in range(arguments.repeats):
        for name, run in ways.items():
            if name != "filterpy" or repeat < SLOW:
                durations[name].append(clocked(run))
    for name, values in durations.items():
        print(f"{name:10s} {statistics.median(values):10.2f} ms")
    ratios = {}
    for mine, peer in (
        ("steps", "filterpy"),
        ("series", "filterpy"),
        ("series", "dynamax"),
        ("steps", "dynamax"),
    ):
        pairs = np.array([b / a for a, b in zip(durations[mine], durations[peer], strict=False)])
        ratios[f"{mine} against {peer}"] = [
            round(float(v), 3) for v in np.quantile(pairs, (0.5, 0.25, 0.75))
        ]
    report = {"benchmark": "kalman", "peer": "filterpy, dynamax", "ratios": ratios, "goals": GOALS}
    print(json.dumps(report | {"series": arguments.series, "times": arguments.times}))


if __name__ == "__main__":
    main()
