"""Checks for the collapse of particle filters, for a series and inside a likelihood."""

from __future__ import annotations

import numpy as np
import torch

from components.contracts.checks import Check, Trace, recorded_values
from components.contracts.posteriors import HoldsDraws
from components.contracts.roles import Problem
from components.metrics import limits
from components.series.posteriors.filtered import Filtered
from components.series.posteriors.smoothed import SmoothedSeries
from components.series.sequence import Sequence

EQUAL = 1e-6  # relative rounding error of the effective sample size of equal weights


def inner_filter_checks(draws: HoldsDraws) -> list[Check]:
    """Check that fails if the filters of most draws, by weight, have collapsed.

    A filter has collapsed if one particle carries half of the weight.  Its estimate log Ẑ then
    varies by many nats between passes: a chain sticks where the estimate was too high, and weights
    of parameters follow the noise.  Empty for draws without a filter.
    """
    ess = draws.stats.get("filter_ess")
    if ess is None or not ess.numel():
        return []
    weights = torch.ones_like(ess) if draws.log_weights is None else draws.log_weights.softmax(1)
    share = (weights * (ess < limits.LEAST_ESS)).sum() / weights.sum()
    detail = (
        f"{100 * float(share):.3g} % of the draws have a filter with ESS below {limits.LEAST_ESS:g}"
    )
    detail += f"; the median of their smallest ESS is {float(ess.median()):.3g}"
    passed = float(share) <= 0.5
    detail += (
        ""
        if passed
        else "; raise inference.filter.particles, or check the prior and the scale of the data"
    )
    return [Check("the inner filters have not collapsed", passed, detail)]


def particle_checks(trace: Trace, posterior: object = None) -> list[Check]:
    """Check of the effective sample size of a particle filter at every time.

    For a posterior without it, for example from an early record, only recorded times are checked.
    Exact filters are not checked.
    """
    ess = posterior.ess if isinstance(posterior, Filtered | SmoothedSeries) else None
    if ess is not None:
        values = ess.double().cpu().numpy().T
        times = list(range(1, ess.shape[1] + 1))
    else:
        values = np.array(recorded_values(trace, "ess"))
        times = [step for step, record in trace if "ess" in record]
    if not len(values):
        return []
    least = values.min(1)  # [T], of the worst replicate
    is_degenerate = least < limits.LEAST_ESS
    detail = f"smallest ESS {least.min():.3g}"
    if is_degenerate.any():
        detail += (
            f", below {limits.LEAST_ESS:g} at {is_degenerate.sum()} of "
            f"{len(is_degenerate)} recorded times, first t = {times[is_degenerate.argmax()]}"
        )
    else:
        detail += f" at t = {times[least.argmin()]}, of {len(is_degenerate)} recorded times"
    return [Check("no particle carries half of the weight", not is_degenerate.any(), detail)]


def observation_checks(posterior: object, problem: Problem) -> list[Check]:
    """Check that a filter that can ignore observations follows some of them.

    A robust loss saturates if all observations are far off.  Particles then have equal weights for
    any observation, and the effective sample size never changes.
    """
    ess = posterior.ess if isinstance(posterior, Filtered | SmoothedSeries) else None
    weight = posterior.weight if isinstance(posterior, Filtered) else None
    if ess is not None:
        # the number of particles, a whole number, if some time has equal weights
        most = ess.amax(1, keepdim=True)
        # [R, T]
        follows = (ess < most * (1 - limits.MIN_USED_SHARE)) | ~torch.isclose(
            most, most.round(), rtol=EQUAL, atol=0
        )
    elif weight is not None:
        follows = weight > limits.MIN_USED_SHARE
    else:
        return []
    if not isinstance(problem, Sequence) or follows.shape[1] < 2:
        return []
    is_observed = ~problem.missing[:, : follows.shape[1]].to(follows.device)
    number = (follows & is_observed).sum(1)
    n_observed = is_observed.sum(1)  # [R]
    worst = int((number / n_observed.clamp_min(1)).argmin())
    passed = bool(((number > 0) | (n_observed == 0)).all())
    detail = f"{int(number[worst])} of {int(n_observed[worst])} observations change the weights"
    detail += f", the fewest of {len(n_observed)} replicates" if len(n_observed) > 1 else ""
    if not passed:
        detail += "; they are too far off for this loss: check the prior and the scale of the data"
    return [Check("the filter follows its observations", passed, detail)]
