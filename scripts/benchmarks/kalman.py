"""Benchmark of Kalman filters."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.posteriors.filtered import Filtered
from components.series.sequence import Sequence
from runner.execution.rng import Streams
from scripts.benchmarks.harness import Report, Way
from scripts.benchmarks.workloads import component, load, train
from scripts.peers.installed import AbsentPeer, peer_imports


def build_filterpy(
    model: LinearGaussianModule, problem: Sequence
) -> Callable[[], list[tuple[np.ndarray, np.ndarray]]]:
    """Means [T, dx] and covariances [T, dx, dx] of each series."""
    with peer_imports():
        from filterpy.kalman import KalmanFilter

    A, Q, H, Sigma, m0, P0 = (
        m.numpy() for m in (model.A, model.Q, model.H, model.Sigma, model.m0, model.P0)
    )
    observations = problem.observations.numpy()

    def run() -> list[tuple[np.ndarray, np.ndarray]]:
        moments = []
        for y in observations:
            filter = KalmanFilter(dim_x=len(A), dim_z=len(H))
            matrices = {"x": m0.copy(), "P": P0.copy(), "F": A, "Q": Q, "H": H, "R": Sigma}
            for name, matrix in matrices.items():
                setattr(filter, name, matrix)
            means, covariances, *_ = filter.batch_filter(y)
            moments.append((means, covariances))
        return moments

    return run


def build_dynamax(model: LinearGaussianModule, problem: Sequence) -> Callable[[], Any]:
    """dynamax's posterior of all series; the first state belongs to the first observation."""
    with peer_imports():
        import jax
        from dynamax.linear_gaussian_ssm import lgssm_filter
        from dynamax.linear_gaussian_ssm.inference import make_lgssm_params

    jax.config.update("jax_enable_x64", True)
    m1 = model.A @ model.m0
    P1 = model.A @ model.P0 @ model.A.T + model.Q
    matrices = (m1, P1, model.A, model.Q, model.H, model.Sigma)
    params = make_lgssm_params(*(jax.numpy.array(m.numpy()) for m in matrices))
    compiled = jax.jit(jax.vmap(lambda y: lgssm_filter(params, y)))
    observations = jax.numpy.array(problem.observations.numpy())
    return lambda: jax.block_until_ready(compiled(observations))


def build_steps(model: LinearGaussianModule, problem: Sequence) -> Way:
    """Steps of inference=kalman without a record."""
    kalman = component("inference", "kalman")
    rng = Streams(0)

    def run() -> Filtered:
        times = problem.observations.shape[1]
        return kalman.posterior(train(kalman, model, problem, rng, times))

    return run


def assert_equal(ways: dict[str, Way]) -> None:
    """Assert that means, variances and log evidences agree; dynamax adds a jitter of 1e-9."""
    results = {name: way() for name, way in ways.items()}
    steps = results["steps"]
    pairs = []
    if "filterpy" in results:
        means, covariances = (np.stack(each) for each in zip(*results["filterpy"], strict=True))
        pairs += [(means, steps.mean, 1e-7), (_variances(covariances), steps.variance, 1e-9)]
    if "dynamax" in results:
        other = results["dynamax"]
        variances = _variances(np.asarray(other.filtered_covariances))
        pairs += [(other.filtered_means, steps.mean, 1e-7), (variances, steps.variance, 1e-7)]
        pairs += [(other.marginal_loglik, steps.log_normaliser, 1e-5)]
    for ours, theirs, most in pairs:
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=0, atol=most)


def _variances(covariances: np.ndarray) -> np.ndarray:
    return np.diagonal(covariances, axis1=-2, axis2=-1)


def measure(options: Namespace, report: Report) -> None:
    """The Kalman filter of 100 series in one run, against filterpy's and dynamax's.

        python -m scripts.benchmarks kalman --series 20 --times 200    # Wiener velocity, T = 1,000

    Ours (``steps``) is a run with inference=kalman, which processes single observations and records
    summaries.  filterpy filters the series sequentially; dynamax's filter receives all observations in
    advance, is mapped over the series and compiled, which is not timed.  Means, variances and log
    evidence must agree.

    Our step is slower than one of dynamax's scan by design: it processes one observation at a time, so
    that a run can be evaluated, stopped and resumed at any time, and it appends five summaries of all
    series to the record.  A step takes 50 to 60 µs: 10 µs for the appends, the rest for about 15
    calls of torch on small matrices; dynamax's step takes 6 µs.
    """
    problem = load("wiener_velocity", options.series, n_steps=options.times)
    model = LinearGaussianModule(problem.system)
    ways: dict[str, Way] = {"steps": build_steps(model, problem)}
    for name, build_peer in (("dynamax", build_dynamax), ("filterpy", build_filterpy)):
        with suppress(AbsentPeer):
            ways[name] = build_peer(model, problem)
    assert_equal(ways)
    seconds = report.time(ways, options.repeats, warmups=3, at_most={"filterpy": 3})
    for peer in set(ways) & {"filterpy", "dynamax"}:
        report.compare(f"steps against {peer}", seconds["steps"], seconds[peer])
    report.facts |= {"series": options.series, "times": options.times}
