"""Log-likelihood of a dynamic linear model with its gradient, against statsmodels.

    python -m scripts.benchmarks dlm --sets 1 20     # parameter sets evaluated together

120 months of co2 (simulated without the file); level, slope, season of 12.  Ours is
``log_likelihood`` of model=dlm with its backward pass, as in every step of inference=vis, hmc and
nuts.  statsmodels computes gradients of user-defined models by forward differences: P + 1 passes,
sequentially over parameter sets.  ``50 ms by ours`` is the ratio of the goal for one set to our
time."""

from __future__ import annotations

import math
import warnings
from argparse import Namespace
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from components.series.models.dlm import DynamicLinear
from components.series.sequence import Sequence
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report
from scripts.benchmarks.workloads import component, load
from scripts.peers.installed import peer_imports

STEP = 1e-7  # step of forward differences
ValueAndGradient = tuple[np.ndarray, np.ndarray]
MOST = 0.05  # seconds


def build_statsmodels(
    model: DynamicLinear, problem: Sequence, theta: Tensor
) -> Callable[[], ValueAndGradient]:
    """The same matrices in the form of statsmodels, where the first state belongs to the first
    observation."""
    with peer_imports():
        from statsmodels.tsa.statespace.kalman_filter import KalmanFilter

    system = model.system
    d = len(system.m0)
    filter = KalmanFilter(k_endog=1, k_states=d)
    filter.bind(problem.observations[0].numpy().copy())
    G = system.G.numpy()
    filter["transition"] = G
    filter["design"] = system.F.numpy()[None]
    filter["selection"] = np.eye(d)
    counts = list(model.noises.values())

    def value(at: np.ndarray) -> float:
        variances = np.exp(2 * at)
        Q = np.diag(np.repeat(variances[1:], counts))
        filter["state_cov"] = Q
        filter["obs_cov"] = variances[:1, None]
        filter.initialize_known(np.zeros(d), system.s0**2 * G @ G.T + Q)
        return float(filter.loglike())

    def run() -> ValueAndGradient:
        values = []
        gradients = []
        for point in theta.numpy():
            base_value = value(point)
            values.append(base_value)
            gradients.append(
                [(value(point + STEP * unit) - base_value) / STEP for unit in np.eye(len(point))]
            )
        return np.array(values), np.array(gradients)

    return run


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
