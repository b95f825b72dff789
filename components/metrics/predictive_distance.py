"""Distance between predictions of a posterior and of a gold standard at the same inputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from components.contracts.checks import check_shape

Values = NDArray[np.float64]  # of each test row


def predictive_distances(
    mean: Values, sd: Values, gold_mean: Values, gold_sd: Values
) -> dict[str, float]:
    """Root mean squares over the inputs, in standard deviations of the gold predictive, so that
    units cancel:

        distance_mean   (m − m*) / s*
        distance_sd     (s − s*) / s*
        distance        √((m − m*)² + (s − s*)²) / s*, the Wasserstein-2 distance of Gaussians with these moments

    and the mean over the inputs of the total variation of these Gaussians, in [0, 1]:

        distance_tv     ½ ∫ |N(y; m, s²) − N(y; m*, s*²)| dy

    The third, √(distance_mean² + distance_sd²), is used for ranking.  Predictives include the
    observation noise, so that differences matter as far as they affect forecasts, and variation of
    the function far below the noise does not."""
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
        "distance_tv": float(total_variation(shift, sd / gold_sd).mean()),
    }


def total_variation(d: Values, r: Values) -> Values:
    """Total variation of N(d, r²) and N(0, 1): the difference of their probabilities for the
    interval between the two points of equal density,

        (r² − 1) x² + 2 d x − d² − 2 r² log r = 0

    For r = 1 one of these points is infinite.  The root without cancellation is computed first."""
    square = d**2 + 2 * (r**2 - 1) * np.log(r)
    q = -d - np.where(d < 0, -1.0, 1.0) * r * np.sqrt(np.maximum(square, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = q / (r**2 - 1), -(d**2 + 2 * r**2 * np.log(r)) / q
        ours, gold = (
            ndtr((ends[1] - m) / s) - ndtr((ends[0] - m) / s) for m, s in ((d, r), (0, 1))
        )
    return np.where(q == 0, 0.0, np.abs(ours - gold))
