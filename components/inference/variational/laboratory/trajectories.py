"""Error of gradient estimators with a state that depends on earlier steps."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

from components.inference.variational.laboratory.frozen import Frozen
from components.inference.variational.laboratory.spread import MeasuredEstimator, measure_spread

# streams of a freeze: the long-run gradient, and the first of the trajectories
LONG_RUN, TRAJECTORY = 599, 600


def squared_distances(
    frozen: Frozen,
    watched: list[MeasuredEstimator],
    trajectories: list[list[Any]],
    draws: int,
) -> list[float]:
    """Mean squared distance of each estimator from a long-run gradient, over trajectories of its
    state and fresh minibatches.

        E‖ĝ − ∇L‖² = E (ĝ − ḡ)ᵀ(ĝ − ḡ′)

    All gradients are divided by N.  ḡ and ḡ′ [P] are the means of ``draws`` estimates each of the
    first estimator with all rows; they are independent, so that their noise adds nothing in
    expectation.  The distance includes the bias given the state, which the covariance at one state
    omits.

    Args:
        trajectories: the states of the estimators at the frozen parameters, by trajectory.
        draws: number of estimates in each trajectory, each at another minibatch.
    """
    rng = frozen.own(LONG_RUN)
    first, second = (
        measure_spread(
            watched[0].estimate(frozen.module, batch, rng, frozen.chosen)[0]
            for _, batch in frozen.problem.batches("whole", rng, half * draws, (half + 1) * draws)
        ).mean
        for half in range(2)
    )
    distances: list[list[float]] = [[] for _ in watched]
    for r, states in enumerate(trajectories):
        rng = frozen.own(TRAJECTORY + r)
        for batch in frozen.iterate_batches(TRAJECTORY + r, 0, draws):
            for estimator, state, values in zip(watched, states, distances, strict=True):
                learnt = replace(estimator, state=state)
                gradient = learnt.estimate(frozen.module, batch, rng, frozen.chosen)[0]
                values.append(float((gradient - first) @ (gradient - second)))
    return [statistics.fmean(values) for values in distances]
