"""Kalman filters of filterpy, one series after the other, and of dynamax, mapped over the
series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.sequence import Sequence
from scripts.peers.installed import peer_imports


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
    """Its posterior of all series; its first state is that of the first observation."""
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
