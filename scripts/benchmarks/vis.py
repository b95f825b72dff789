"""One step of ``inference=vis`` with T = 5 refinements against T = 0, variational inference.

The auto-encoder of Gallego (2021), 2.B.2, on binary noise: a refinement follows the gradient of the
decoder's log joint in z.  ``fast`` treats the refinements as constant, ``full`` differentiates them.
``full`` and ``fast`` must have equal values, and T = 5 with η → 0 the mean objective of T = 0.  A
ratio is the time of T = 0 divided by the way's time: 0.4 means 2.5 times as long."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import torch

from components.contracts.problems import Rows
from components.problems.unlabelled import Unlabelled
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report, Way
from scripts.benchmarks.workloads import component, noise_regression, steps_of

WAYS = {
    "T = 0": {"refine_steps": 0},
    "fast": {"differentiate": "fast"},
    "full": {"differentiate": "full"},
}
PIXELS = 784
ROWS = 1000
BATCH = 100


def draw_images() -> tuple[Any, Any, Rows]:
    x = (torch.rand(ROWS, PIXELS, generator=Streams(0).data) < 0.2).float()
    rows = Rows(x, 1.0)
    model = component("model", "vae", latent_dim=10, widths=[200, 200], guide="separate")
    problem = Unlabelled("noise", "binary", rows, rows, BATCH)
    return model, problem, Rows(x[:BATCH], ROWS / BATCH)


def draw_table() -> tuple[Any, Any, Any]:
    """Network, noise with the size of Boston housing, and a batch of it."""
    problem, _ = noise_regression(ROWS, 13, BATCH, Streams(0), torch.float32)
    return component("model", "bnn"), problem, problem.train.part(slice(0, BATCH), ROWS / BATCH)


def build_step(model: Any, problem: Any, batch: Any, **keys: Any) -> Way:
    keys = {"refine_steps": 5, "n_samples": 1, "eta": 1e-5} | keys
    inference = component("inference", "vis", **keys)
    return steps_of(inference, problem, batch, model.build(problem, Streams(0)), Streams(0))


def assert_equal(workload: tuple[Any, Any, Any], report: Report) -> None:
    constant = {"lr": 1e-30, "optimizer": "sgd", "momentum": 0.0}
    fast, full = (
        build_step(*workload, **constant, **WAYS[way])()["objective"] for way in ("fast", "full")
    )
    report.assert_close("objectives of fast and full", fast, full, 1e-5)
    samples = {}
    for name, keys in (("T = 0", WAYS["T = 0"]), ("η → 0", {"kernel": "sgd", "eta": 1e-12})):
        step = build_step(*workload, **constant, **keys)
        infos = [step() for _ in range(30)]
        samples[name] = [float(info.get("elbo", info.get("objective"))) for info in infos]
    report.assert_equal_means(samples)


def measure(options: Namespace, report: Report) -> None:
    for name, workload in (("vae", draw_images()), ("bnn", draw_table())):
        assert_equal(workload, report)
        steps = {way: build_step(*workload, **keys) for way, keys in WAYS.items()}
        seconds = report.time(steps, options.repeats, warmups=10)
        for way in ("fast", "full"):
            report.compare(f"{name}, {way}", seconds[way], seconds["T = 0"])
