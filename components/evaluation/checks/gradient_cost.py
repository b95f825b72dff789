"""A warning where the plain gradient with more samples costs less than a control variate.

A control variate lowers the variance of a gradient, and its estimates take longer.  More
samples of the plain gradient do the same: S samples have 1/S of the variance of one, and
where samples are computed together they take hardly longer.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from components.contracts.roles import Gradient, Inference
from components.contracts.streams import Beside, Rng
from components.errors import CheaperMethodWarning
from components.gradients.pathwise.reparam import Reparam
from components.inference.variational.ascent import TrainingState
from components.inference.variational.laboratory.measured import Measured
from components.inference.variational.laboratory.spread import (
    MeasuredEstimator,
    spread_at_batch,
    time_in_turn,
    time_ratios,
)
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled

STREAM = 2 * 10**7  # index of the streams of these estimates: no step and no laboratory has it
DRAWS = 60  # estimates behind a variance
ROUNDS = 15  # estimates of each kind that are timed, in turn
MOST_SAMPLES = 64
MARGIN = 0.9  # of the time or cost: what is hardly cheaper is not named


def warn_of_cheaper_samples(
    problem: object,
    posterior: object,
    inference: Inference[Any, Any, Any, Any],
    state: object,
    scores: Mapping[str, Any],
    rng: Rng,
) -> None:
    """Warns where a plain gradient with more samples is cheaper for the same variance.

    It is measured after the first replicate.
    """
    if rng.replicate:
        return
    message = None
    if isinstance(posterior, Measured):
        message = compare_measured(posterior, scores)
    elif isinstance(state, TrainingState) and isinstance(problem, Supervised | Unlabelled):
        gradients = [value for value in dict(inference).values() if isinstance(value, Gradient)]
        message = compare_with_samples(gradients[0], state, problem, rng) if gradients else None
    if message:
        warnings.warn(message, CheaperMethodWarning, stacklevel=2)


def compare_measured(posterior: Measured, scores: Mapping[str, Any]) -> str | None:
    """The plain gradient in a laboratory that has the least variance × time, and the estimators
    that have more, at the last step measured; None: there are none."""
    prefix = "variance_seconds"
    first = posterior.labels[0]
    measured = [t for t in posterior.at if f"{prefix}/{first}/{t}" in scores]
    plain = [label for label in posterior.labels if label.split()[0] == "reparam"]
    if not measured or not plain:
        return None
    t = measured[-1]
    costs = {label: float(np.mean(scores[f"{prefix}/{label}/{t}"])) for label in posterior.labels}
    best = min(plain, key=costs.__getitem__)
    dearer = {
        label: cost
        for label, cost in costs.items()
        if label not in plain and MARGIN * cost > costs[best]
    }
    if not dearer:
        return None
    listed = "; ".join(f"{label} {cost:.2g}" for label, cost in dearer.items())
    return (
        f"variance × time after {t} steps, over that of {first}: {best} {costs[best]:.2g}, which is "
        f"cheaper for the same variance than {listed}"
    )


def compare_with_samples(
    gradient: Gradient, state: TrainingState[Any], problem: Supervised | Unlabelled, rng: Rng
) -> str | None:
    """The number of samples with which the plain gradient has no more variance than an estimator
    and takes less time, on one minibatch; None: the estimator is cheaper, or is the plain one."""
    pathwise = "pathwise" in gradient.requires.capabilities
    if isinstance(gradient, Reparam) or not pathwise or not gradient.unbiased:
        return None
    _, batch = next(iter(problem.batches("minibatch", Beside(rng, STREAM), 0, 1)))
    module = state.module
    chosen = [p.requires_grad for p in module.parameters()]

    def plain(n_samples: int) -> MeasuredEstimator:
        estimator = Reparam(name="reparam", n_samples=n_samples)
        return MeasuredEstimator("reparam", estimator, None, Beside(rng, STREAM))

    own = MeasuredEstimator(gradient.name, gradient, state.gradient, Beside(rng, STREAM))
    traces = [
        spread_at_batch(one, module, batch, Beside(rng, STREAM), DRAWS, chosen).trace
        for one in (plain(1), own)
    ]
    ratio = traces[1] / traces[0] if traces[0] > 0 else 0.0
    if ratio * MOST_SAMPLES < 1 or not math.isfinite(ratio):
        return None
    samples = 2 ** max(0, math.ceil(-math.log2(ratio)))
    timed = [plain(1), own, plain(samples)]
    streams: list[Rng] = [Beside(rng, STREAM) for _ in timed]
    _, own_time, plain_time = time_ratios(time_in_turn(timed, module, batch, streams, ROUNDS))
    if plain_time > MARGIN * own_time:
        return None
    return (
        f"the plain gradient with S = {samples} samples is cheaper for this variance: "
        f"inference.gradient=reparam inference.n_samples={samples}. Over one sample of it, "
        f"gradient={gradient.name} has {ratio:.2g} of the variance in {own_time:.1f} times the "
        f"time, S = {samples} has {1 / samples:.2g} in {plain_time:.1f}"
    )
