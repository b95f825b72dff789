"""Filtered and smoothed states as ArviZ's InferenceData.

posterior        x_t ~ N(m_t, v_t), the first two moments of p(x_t | y_1:t), or of
                 p(x_t | y_1:T) of a smoother, by time and coordinate: only the marginals of each
                 x_tj, not paths  [1, N, time, state]
observed_data    y_t at the times with an observation [seen]; y1, y2, … for several coordinates
"""

from __future__ import annotations

import torch

from components.contracts.posteriors import SmoothedStates
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.posteriors.inference_data import MOST_NUMBERS, Groups
from components.series.sequence import Sequence

DRAWS = 1000
STREAM = 9_003  # index of an evaluation generator


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


def smoothed_state_groups(problem: Sequence, posterior: SmoothedStates, rng: Rng) -> Groups:
    """All groups of the first replicate.

    Raises:
        ConfigMismatchError: nothing has been observed yet."""
    mean = posterior.mean[0]
    variance = posterior.variance[0]  # [T, dx]
    if mean.numel() == 0:
        raise ConfigMismatchError("no time step has been filtered yet; take more steps")
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
    return groups
