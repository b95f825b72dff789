"""Sanity checks of a run, apart from the checks of its attack.

They detect chains that did not mix, collapsed filters, steps that are too large, a bound that still
rises, and scores that are not numbers.  They do not change the scores.
"""

from __future__ import annotations

import numpy as np

from components.contracts.checks import Check, Scores, recorded_values
from components.contracts.posteriors import FilteredStates
from components.contracts.roles import ChecksRuns, FinishedRun
from components.errors import list_names
from components.evaluation.checks.class_predictions import (
    class_checks,
    missing_checks,
    predict_test_rows,
)
from components.evaluation.checks.finite_scores import finite_scores
from components.evaluation.checks.moments import moments_checks
from components.inference.sgmcmc.dynamics import GradientDynamics
from components.metrics import limits

SHORT = "not in a smoke run, which is too short"


def run_checks(run: FinishedRun, smoke: bool, declared: bool = False) -> list[Check]:
    """All checks of a finished run: scores, predictions, draws, and the checks of its method.

    For a smoke run only the scores are checked, because it takes few steps.  ``declared`` is as in
    ``class_checks``.
    """
    posterior = run.posterior
    predictions = predict_test_rows(run.problem, posterior, run.rng)
    checks = [finite_scores(run.scores, run.problem), *missing_checks(predictions)]
    bounds = recorded_values(run.trace, "elbo")
    if smoke:
        converges = (
            run.inference.mixes and isinstance(posterior, ChecksRuns),
            isinstance(posterior, FilteredStates),
            isinstance(run.inference, GradientDynamics),
            bounds,
        )
        if any(converges):
            checks.append(Check("it has converged", None, SHORT))
        return checks
    checks += interval_checks(run.scores)
    checks += class_checks(predictions, declared)
    mixed = posterior.checks(run) if isinstance(posterior, ChecksRuns) else []
    checks += [*mixed, *moments_checks(run.problem, posterior, run.inference, mixed)]
    if bounds:
        checks.append(bound_check(bounds))
    return checks + run.inference.checks(run)


def interval_checks(scores: Scores) -> list[Check]:
    """Check that each interval among the scores has positive width; a plan from a single value of
    its effects has no interval."""
    name = "intervals have a width"
    ends = [key.removesuffix("_lower95") for key in scores if key.endswith("_lower95")]
    widths = {
        key: np.subtract(scores[f"{key}_upper95"], scores[f"{key}_lower95"]).min() for key in ends
    }
    if empty := [key for key, width in widths.items() if width <= 0]:
        return [
            Check(
                name,
                False,
                f"{list_names(empty)}: both ends are equal; store more draws",
                is_short=True,
            )
        ]
    if "plan_gain" in scores and "plan_width90" not in scores:
        detail = (
            "the gain of the plan has no interval because it is based on a point estimate of the "
            "effects; use draws, for example inference=structural_gibbs"
        )
        return [Check(name, None, detail)]
    return [Check(name, True, f"{len(ends)} intervals")] if ends else []


def bound_check(values: list[list[float]]) -> Check:
    """Check that the bound no longer rises.

    Compares the second half of the last fifth of the recorded values with its first half.
    """
    name = "the bound no longer rises"
    window = len(values) // 10
    if window < limits.BOUND_LINES:
        needed = 10 * limits.BOUND_LINES
        return Check(
            name,
            None,
            f"{len(values)} recorded values, {needed} required; raise steps or lower record_every",
        )
    first_half = np.array(values[-2 * window : -window])
    second_half = np.array(values[-window:])  # [window, R]
    gain = second_half.mean(0) - first_half.mean(0)
    noise = np.sqrt((first_half.var(0, ddof=1) + second_half.var(0, ddof=1)) / window)
    relative = gain / np.abs(second_half.mean(0))
    rising = (relative > limits.BOUND_GAIN) & (gain > limits.BOUND_NOISE * noise)
    worst = int(np.argmax(relative))
    detail = f"{gain[worst]:+.4g} ({relative[worst]:+.2%}) ± {noise[worst]:.2g} over the last tenth"
    return Check(name, not rising.any(), detail, is_short=True)
