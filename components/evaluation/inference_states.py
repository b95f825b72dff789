"""Filtered and smoothed states as ArviZ's InferenceData.

    posterior        x_t ~ N(m_t, v_t), the first two moments of p(x_t | y_1:t), or of
                     p(x_t | y_1:T) of a smoother, by time and coordinate: only the
                     marginals of each x_tj, not of paths  [1, N, time, state]
    log_likelihood   log p(y_t | x_t) of a filter in which weights are likelihoods
                     [1, N, seen]
    observed_data    y_t of the times with an observation [seen]; y1, y2, … of several
                     coordinates

Leaving y_t out of p(x_t | y_1:t) gives the one-step predictive density
p(y_t | y_1:t−1) = 1 / E[1 / p(y_t | x_t)]: ``az.loo`` of a filter estimates its log
evidence.  Where draws from these marginals cannot do this (an observation more
informative about its state than all before it, marginals that are not normal,
coordinates that depend on each other) there is no log_likelihood, and a warning.
"""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from components.contracts.capabilities import StateSpace
from components.contracts.posteriors import FilteredStates, SmoothedStates
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError, IncompleteResultWarning
from components.posteriors.inference_data import Groups
from components.series.sequence import Sequence

DRAWS = 1000
MOST_NUMBERS = 10_000_000  # of the states, 80 MB in float64
STREAM = 9_003  # of the evaluation's fresh generators
# nats between the two log evidences: smaller differences of elpd say little (Sivula and others
# 2020)
APART = 4.0


def observation_groups(problem: Sequence, times: int | None = None) -> Groups:
    """Observations of the first replicate up to a time."""
    y = problem.observations[0, :times]  # [T, dy]
    is_observed = ~y.isnan().any(1)
    dates = problem.dates[: len(y)] or range(1, len(y) + 1)
    when = [
        time for time, is_present in zip(dates, is_observed.tolist(), strict=True) if is_present
    ]
    names = ["y"] if y.shape[1] == 1 else [f"y{j + 1}" for j in range(y.shape[1])]
    values = {
        name: column.cpu().numpy() for name, column in zip(names, y[is_observed].T, strict=True)
    }
    return Groups({"observed_data": values}, {name: ["seen"] for name in names}, {"seen": when})


def smoothed_state_groups(
    problem: Sequence, posterior: SmoothedStates, model: object, rng: Rng
) -> Groups:
    """All groups of the first replicate.

    Raises:
        ConfigMismatchError: nothing has been seen yet."""
    mean = posterior.mean[0]
    variance = posterior.variance[0]  # [T, dx]
    if mean.numel() == 0:
        raise ConfigMismatchError("no time has been filtered yet; take more steps")
    times, dx = mean.shape
    n = max(2, min(DRAWS, MOST_NUMBERS // mean.numel()))
    generator = rng.at("evaluation", STREAM)
    eps = torch.randn(
        n, times, dx, generator=generator, dtype=mean.dtype, device=generator.device
    ).to(mean.device)
    x = mean + variance.clamp_min(0).sqrt() * eps  # [N, T, dx]
    groups = observation_groups(problem, times)
    names = [*problem.state_names[:dx], *(f"x{j + 1}" for j in range(len(problem.state_names), dx))]
    groups.values["posterior"] = {"x": x[None].cpu().numpy()}
    groups.dims["x"] = ["time", "state"]
    groups.coords |= {"time": [*(problem.dates[:times] or range(1, times + 1))], "state": names}
    if (
        isinstance(posterior, FilteredStates)
        and (log_likelihood := _log_likelihood(problem, posterior, model, x)) is not None
    ):
        groups.values["log_likelihood"] = {"y": log_likelihood[None].cpu().numpy()}
        groups.dims["y"] = ["seen"]
    return groups


def _log_likelihood(
    problem: Sequence, posterior: FilteredStates, model: object, x: Tensor
) -> Tensor | None:
    """log p(y_t | x_t) of the times that were seen [N, seen]; None, and a warning: it is not what
    weighs them out."""
    if not posterior.evidence or not isinstance(model, StateSpace):
        why = (
            "its weights are not likelihoods"
            if isinstance(model, StateSpace)
            else "its model has parameters of its own"
        )
        _short(
            f"no log_likelihood: leaving a time out of this filter's states is not what was said before it, {why}"
        )
        return None
    y = problem.observations[:1, : x.shape[1]]
    times = (~y[0].isnan().any(1)).nonzero()[:, 0].tolist()
    with torch.no_grad():
        rows = [model.log_observation(y[:, t], x[None, :, t], t + 1)[0] for t in times]
    log_likelihood = torch.stack(rows, 1)  # [N, seen]
    beforehand = float((math.log(len(log_likelihood)) - torch.logsumexp(-log_likelihood, 0)).sum())
    evidence = float(posterior.log_normaliser[0])
    if not abs(beforehand - evidence) < APART:
        _short(
            f"no log_likelihood: weights that leave a time out make {beforehand:.1f} of the log evidence, which is "
            f"{evidence:.1f} (observations that say much of their states, or states that are not normal); compare log_evidence"
        )
        return None
    return log_likelihood


def _short(message: str) -> None:
    warnings.warn(message, IncompleteResultWarning, stacklevel=3)
