"""One step of ``inference=vis`` with T = 5 refinements against one with T = 0, which is variational
inference.

    python -m scripts.bench_vis                  # 784-200-200-10 and back, 100 rows, S = 1, one JSON line
    python -m scripts.bench_vis --repeats 200

The auto-encoder of Gallego (2021), 2.B.2 (two encoders, ReLU units), on binary noise: a refinement
follows the gradient of the decoder's log joint in z.  Held still (fast) it costs a pass through the
decoder forth and back; differentiated (full) these passes are differentiated in turn, in the
decoder's weights too.  Printed are 10.46 s an epoch against 6.10 s (1.7×), on a GPU.  The same on
the weights of a network of 13-50-1 (``bnn``), 100 rows, has no goal.

Before a time is printed full and fast are asserted to have one value, and T = 5 with η → 0 to have
the gradient of T = 0 on average.  Steps are interleaved, seconds are of the process's own CPU, on
one thread; a ratio is the median of T = 0's time over that of the step beside it: 0.4 is 2.5 times
as long."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import yaml

from components import registry
from components.contracts.problems import Batch, Rows
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from runner.disk import conf_folders
from runner.execution.memory import keep_freed_memory
from runner.execution.rng import Streams

GOALS = {"vae, fast": 1 / 2.5, "vae, full": 1 / 5}  # least ratio of T = 0's time to ours
WAYS = {
    "T = 0": {"refine_steps": 0},
    "fast": {"differentiate": "fast"},
    "full": {"differentiate": "full"},
}
PIXELS, ROWS, BATCH = 784, 1000, 100


def component(role: str, name: str, **keys: Any) -> Any:
    """A component with the defaults of its YAML, but for ``keys``."""
    path = conf_folders.find(role, name)
    assert path is not None
    return registry.get(role, name).model_validate(
        yaml.safe_load(path.read_text(encoding="utf-8")) | keys
    )


def images() -> tuple[Any, Unlabelled, Rows]:
    """Binary noise, and a batch of it."""
    rng = Streams(0)
    rows = Rows((torch.rand(ROWS, PIXELS, generator=rng.data) < 0.2).float(), 1.0)
    model = component("model", "vae", latent_dim=10, widths=[200, 200], guide="separate")
    return (
        model,
        Unlabelled("noise", "binary", rows, rows, BATCH),
        Rows(rows.x[:BATCH], ROWS / BATCH),
    )


def table() -> tuple[Any, Supervised, Batch]:
    """Noise of the size of Boston housing, and a batch of it."""
    rng = Streams(0)
    x, y = torch.randn(ROWS, 13, generator=rng.data), torch.randn(ROWS, 1, generator=rng.data)
    train = Batch(x, y, torch.ones(ROWS, 1, dtype=torch.bool), 1.0)
    return (
        component("model", "bnn"),
        Supervised("noise", "real", train, train, BATCH),
        train.part(slice(0, BATCH), ROWS / BATCH),
    )


def stepper(model: Any, problem: Any, batch: Any, **keys: Any) -> Callable[[], dict[str, Any]]:
    """One step after the other; each returns its info."""
    inference = component(
        "inference", "vis", **({"refine_steps": 5, "n_samples": 1, "eta": 1e-5} | keys)
    )
    rng = Streams(0)
    slot = {"state": inference.init(model.build(problem, Streams(0)), problem, rng)}

    def step() -> dict[str, Any]:
        slot["state"], info = inference.step(slot["state"], batch, rng)
        return info

    return step


def same(model: Any, problem: Any, batch: Any) -> None:
    """Raises AssertionError where full and fast differ in value, or T = 5 does not lead back to T =
    0."""
    still = {"lr": 1e-30, "optimizer": "sgd", "momentum": 0.0}
    full, fast = (
        stepper(model, problem, batch, **still, **WAYS[way])()["objective"]
        for way in ("full", "fast")
    )
    assert abs(float(full - fast)) <= 1e-5 * abs(float(full)), (
        f"full and fast differ: {float(full)}, {float(fast)}"
    )
    means = []
    for keys in ({"refine_steps": 0}, {"kernel": "sgd", "eta": 1e-12}):
        step = stepper(model, problem, batch, **still, **keys)
        values = torch.stack(
            [
                next(info[k] for k in ("elbo", "objective") if k in info)
                for info in (step() for _ in range(30))
            ]
        )
        means.append((values.mean(), values.var() / len(values)))
    (a, of_a), (b, of_b) = means
    assert abs(float(a - b)) <= 4 * float((of_a + of_b).sqrt()) + 1e-5 * abs(float(a)), (
        "T = 5 with η → 0 is not T = 0"
    )


def clocked(step: Callable[[], Any]) -> float:
    start = time.process_time()
    step()
    return (time.process_time() - start) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repeats", type=int, default=100, help="timed steps of each")
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    keep_freed_memory()
    ratios = {}
    for name, factory in (("vae", images), ("bnn", table)):
        model, problem, batch = factory()
        same(model, problem, batch)
        steps = {way: stepper(model, problem, batch, **keys) for way, keys in WAYS.items()}
        times: dict[str, list[float]] = {way: [] for way in steps}
        for repeat in range(repeats + 10):
            for way, step in steps.items():
                milliseconds = clocked(step)
                if repeat >= 10:
                    times[way].append(milliseconds)
        base = torch.tensor(times["T = 0"], dtype=torch.float64)
        print(f"{name}: T = 0 {base.median():.2f} ms a step")
        for way in ("fast", "full"):
            durations = torch.tensor(times[way], dtype=torch.float64)
            quantiles = (base / durations).quantile(
                torch.tensor([0.5, 0.1, 0.9], dtype=torch.float64)
            )
            ratios[f"{name}, {way}"] = [round(float(v), 3) for v in quantiles]
            print(f"{name}, {way}: {durations.median():.2f} ms, {1 / quantiles[0]:.2f} times T = 0")
    print(json.dumps({"benchmark": "vis", "peer": "T = 0", "ratios": ratios, "goals": GOALS}))


if __name__ == "__main__":
    main()
