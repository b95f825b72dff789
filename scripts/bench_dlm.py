"""Log-likelihood of a dynamic linear model and its gradient (120 months of co2; level, slope,
season of 12), and statsmodels'.

    python -m scripts.bench_dlm                 # one JSON line
    python -m scripts.bench_dlm --sets 1 20     # of how many parameter sets at once

Ours is ``log_likelihood`` of model=dlm with its backward pass, as every step of inference=vis,
gaussian_vi, hmc and nuts takes it.  statsmodels has a compiled Kalman filter and, of a model of
one's own, gradients by forward differences: P + 1 passes, one parameter set after the other.  Its
state-space representation is given the same matrices; value and gradient are asserted to agree with
ours before a number is printed.  Without the file of co2 the months are simulated: times do not
depend on them. Runs are interleaved, seconds are of the process's own CPU, on one thread; the ratio
is the median of those of runs next to each other.  ``50 ms by ours`` is what is asked of one set,
divided by our milliseconds."""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import yaml
from torch import Tensor

import conf
from components import registry
from components.contracts.roles import Setting
from components.series.models.dlm import DynamicLinear
from components.series.sequence import Sequence
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams
from scripts.peers.installed import peer_imports

with peer_imports():
    from statsmodels.tsa.statespace.kalman_filter import KalmanFilter

# of one set the compiled filter is as fast; ours has second derivatives
GOALS = {"50 ms by ours": 1.0}
MOST = 50.0  # milliseconds
STEP = 1e-7  # of forward differences
Both = tuple[np.ndarray, np.ndarray]


def data() -> tuple[DynamicLinear, Sequence]:
    """The model as it is configured, and the months."""
    setting = Setting(
        Path(os.environ.get("RUNNER_DATA_DIR", "data")), torch.device("cpu"), torch.float64, 1
    )
    parts = []
    for role, name in (("dataset", "co2"), ("model", "dlm")):
        with open(os.path.join(os.path.dirname(str(conf.__file__)), role, f"{name}.yaml")) as file:
            parts.append(registry.get(role, name).model_validate(yaml.safe_load(file)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = parts[0].load(Streams(0), setting)
    return parts[1].build(problem, Streams(0)), problem


def ours(model: DynamicLinear, problem: Sequence, theta: Tensor) -> Both:
    theta = theta.clone().requires_grad_()
    value = model.log_likelihood(theta, problem.series)
    (gradient,) = torch.autograd.grad(value.sum(), theta)
    return value.detach()[:, 0].numpy(), gradient.numpy()


def in_statsmodels(model: DynamicLinear, problem: Sequence, theta: Tensor) -> Callable[[], Both]:
    """The same matrices in its representation, whose first state is that of the first
    observation."""
    system, d = model.system, len(model.system.m0)
    filter = KalmanFilter(k_endog=1, k_states=d)
    filter.bind(problem.observations[0].numpy().copy())
    G = system.G.numpy()
    filter["transition"], filter["design"], filter["selection"] = (
        G,
        system.F.numpy()[None],
        np.eye(d),
    )
    counts = list(model.noises.values())

    def value(at: np.ndarray) -> float:
        variances = np.exp(2 * at)
        Q = np.diag(np.repeat(variances[1:], counts))
        filter["state_cov"], filter["obs_cov"] = Q, variances[:1, None]
        filter.initialize_known(np.zeros(d), system.s0**2 * G @ G.T + Q)
        return float(filter.loglike())

    def run() -> Both:
        values, gradients = [], []
        for point in theta.numpy():
            here = value(point)
            values.append(here)
            gradients.append(
                [(value(point + STEP * unit) - here) / STEP for unit in np.eye(len(point))]
            )
        return np.array(values), np.array(gradients)

    return run


def clocked(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return (time.process_time() - start) * 1e3


def times(
    model: DynamicLinear, problem: Sequence, sets: int, repeats: int
) -> dict[str, list[float]]:
    """Milliseconds of both, once they have said the same."""
    spread = torch.randn(
        sets, model.dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    theta = math.log(0.1) + 0.5 * spread
    ways = {
        "ours": lambda: ours(model, problem, theta),
        "statsmodels": in_statsmodels(model, problem, theta),
    }
    (value, gradient), (other, differences) = (run() for run in ways.values())
    assert np.allclose(value, other, rtol=1e-7), f"values differ: {value} and {other}"
    assert np.allclose(gradient, differences, rtol=1e-3, atol=1e-3), (
        f"gradients differ: {gradient} and {differences}"
    )
    print(
        f"{problem.name}, {sets} sets: log-likelihoods the same within {np.abs(value - other).max():.0e}"
    )
    durations: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(repeats + 3):
        for name, run in ways.items():
            milliseconds = clocked(run)
            if repeat >= 3:
                durations[name].append(milliseconds)
    for name, values in durations.items():
        print(f"{name:12s} {statistics.median(values):8.2f} ms")
    return durations


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sets", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--repeats", type=int, default=40)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    model, problem = data()
    pairs: dict[str, list[float]] = {}
    for sets in arguments.sets:
        durations = times(model, problem, sets, arguments.repeats)
        pairs[f"{sets} at once"] = [
            b / a for a, b in zip(durations["ours"], durations["statsmodels"], strict=True)
        ]
        pairs.setdefault("50 ms by ours", [MOST / a for a in durations["ours"]])
    ratios = {
        case: [round(float(v), 3) for v in np.quantile(values, (0.5, 0.25, 0.75))]
        for case, values in pairs.items()
    }
    print(json.dumps({"benchmark": "dlm", "peer": "statsmodels", "ratios": ratios, "goals": GOALS}))


if __name__ == "__main__":
    main()
