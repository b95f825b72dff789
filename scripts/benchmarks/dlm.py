"""Log-likelihood of a dynamic linear model with its gradient, against statsmodels.

    python -m scripts.benchmarks dlm --sets 1 20     # parameter sets evaluated together

120 months of co2 (simulated without the file); level, slope, season of 12.  Ours is
``log_likelihood`` of model=dlm with its backward pass, as in every step of inference=vis, hmc and
nuts.  statsmodels takes gradients of a user's model by forward differences: P + 1 passes, one
parameter set after the other.  ``50 ms by ours`` is the goal for one set over our milliseconds."""

from __future__ import annotations

import math
import warnings
from argparse import Namespace

import numpy as np
import torch
from torch import Tensor

from components.series.models.dlm import DynamicLinear
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report
from scripts.benchmarks.workloads import component, load
from scripts.peers.statsmodels_kalman import ValueAndGradient, build_statsmodels

MOST = 0.05  # seconds


def compute_ours(model: DynamicLinear, series: Tensor, theta: Tensor) -> ValueAndGradient:
    theta = theta.clone().requires_grad_()
    value = model.log_likelihood(theta, series)
    (gradient,) = torch.autograd.grad(value.sum(), theta)
    return value.detach()[:, 0].numpy(), gradient.numpy()


def measure(options: Namespace, report: Report) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = load("co2")
    model = component("model", "dlm").build(problem, Streams(0))
    for sets in options.sets:
        generator = torch.Generator().manual_seed(0)
        spread = torch.randn(sets, model.dim, generator=generator, dtype=torch.float64)
        theta = math.log(0.1) + 0.5 * spread
        ways = {
            "ours": lambda theta=theta: compute_ours(model, problem.series, theta),
            "statsmodels": build_statsmodels(model, problem, theta),
        }
        (value, gradient), (peer_value, differences) = (way() for way in ways.values())
        report.assert_close(f"{sets} sets: log-likelihoods", value, peer_value, 1e-7)
        np.testing.assert_allclose(gradient, differences, rtol=1e-3, atol=1e-3)
        seconds = report.race(f"{sets} at once", ways, options.repeats, warmups=3)
        if sets == options.sets[0]:
            report.record("50 ms by ours", MOST / seconds["ours"])
