"""Runs of inference=kalman."""

from __future__ import annotations

import numpy as np

from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.posteriors.filtered import Filtered
from components.series.sequence import Sequence
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Way
from scripts.benchmarks.workloads import component, train


def build_steps(model: LinearGaussianModule, problem: Sequence) -> Way:
    """Run of inference=kalman without its record."""
    kalman, rng = component("inference", "kalman"), Streams(0)

    def run() -> Filtered:
        times = problem.observations.shape[1]
        return kalman.posterior(train(kalman, model, problem, rng, times))

    return run


def assert_equal(ways: dict[str, Way]) -> None:
    """Largest differences between means, covariances and log evidences; dynamax adds 1e-9."""
    results = {name: way() for name, way in ways.items()}
    steps, series = results["steps"], results["series"]
    mean, P, evidence = series.mean.transpose(0, 1), series.P, series.log_evidence
    pairs = [(steps.mean, mean, 1e-9), (steps.log_normaliser, evidence, 1e-6)]
    if "filterpy" in results:
        means = np.stack([means for means, _ in results["filterpy"]])
        pairs += [(means, mean, 1e-7), (results["filterpy"][0][1], P, 1e-9)]
    if "dynamax" in results:
        other = results["dynamax"]
        pairs += [(other.filtered_means, mean, 1e-7), (other.filtered_covariances[0], P, 1e-7)]
        pairs += [(other.marginal_loglik, evidence, 1e-5)]
    for ours, theirs, most in pairs:
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=0, atol=most)
