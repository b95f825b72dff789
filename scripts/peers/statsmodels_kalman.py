"""Log-likelihood and gradient of a dynamic linear model by statsmodels' compiled Kalman filter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from components.series.models.dlm import DynamicLinear
from components.series.sequence import Sequence
from scripts.peers.installed import peer_imports

STEP = 1e-7  # of forward differences


ValueAndGradient = tuple[np.ndarray, np.ndarray]


def build_statsmodels(
    model: DynamicLinear, problem: Sequence, theta: Tensor
) -> Callable[[], ValueAndGradient]:
    """The same matrices in its representation, whose first state is that of the first
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
        filter["state_cov"], filter["obs_cov"] = Q, variances[:1, None]
        filter.initialize_known(np.zeros(d), system.s0**2 * G @ G.T + Q)
        return float(filter.loglike())

    def run() -> ValueAndGradient:
        values, gradients = [], []
        for point in theta.numpy():
            here = value(point)
            values.append(here)
            gradients.append(
                [(value(point + STEP * unit) - here) / STEP for unit in np.eye(len(point))]
            )
        return np.array(values), np.array(gradients)

    return run
