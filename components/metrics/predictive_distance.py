"""Distance between predictions of a posterior and a gold standard, at the same inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from components.contracts.checks import check_shape

Values = NDArray[np.float64]  # of each test row


def predictive_distances(
    mean: Values, sd: Values, gold_mean: Values, gold_sd: Values
) -> dict[str, float]:
    """Root mean squares over the inputs, each in standard deviations of the gold predictive, so
    that units cancel:

        distance_mean   (m − m*) / s*
        distance_sd     (s − s*) / s*
        distance        √((m − m*)² + (s − s*)²) / s*, the Wasserstein-2 distance of Gaussians with these moments

    The third is what "nearest" is judged by: it is √(distance_mean² + distance_sd²).  Predictives
    hold the noise of the observations, so that what counts is what a forecast is told, not how a
    function wanders far below that noise."""
    for name, values in (("the predicted means", mean), ("the predicted sds", sd)):
        check_shape(name, values, *gold_mean.shape)
    shift = (mean - gold_mean) / gold_sd
    spread = (sd - gold_sd) / gold_sd

    def root_mean(squares: Values) -> float:
        return float(np.sqrt(squares.mean()))

    return {
        "distance_mean": root_mean(shift**2),
        "distance_sd": root_mean(spread**2),
        "distance": root_mean(shift**2 + spread**2),
    }
