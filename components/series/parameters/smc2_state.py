"""State of SMC², and summaries of its mixture over parameter sets."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import Parameterised
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.maths.particles.order_statistics import quantiles
from components.maths.particles.resampling import ancestors
from components.series.filtering.generalised_particle_filter import FilterState
from components.series.posteriors.filtered import Filtering
from components.series.sequence import Sequence


@dataclass(kw_only=True)
class SMC2State:
    """M weighted parameter sets for each of R replicates, each with N particles of the states, and
    the results so far."""

    model: Parameterised = not_checkpointed()
    problem: Sequence = not_checkpointed()  # only y_1 … y_t are read
    particles: int  # N, of the states
    begun: Tensor  # one parameter set per replicate before the first observation [R, P]
    theta: Tensor  # [R·M, P]
    log_w: Tensor  # normalised [R, M]
    log_z: Tensor  # log Ẑ_t(θ) [R·M]
    ess: Tensor  # smallest effective sample size so far in the filter of that estimate [R·M]
    x: Tensor  # [R·M, N, dx]
    log_wx: Tensor  # of the states, normalised [R·M, N]
    filtered: Filtering


def build_filters(state: SMC2State) -> FilterState:
    """The filters of all parameter sets, without stored results."""
    fresh = Filtering(log_normaliser=torch.zeros_like(state.log_z))
    return FilterState(
        model=state.model.at(state.theta),
        particles=state.x,
        log_w=state.log_wx,
        filtered=fresh,
        weighted=None,
    )


def average_over_sets(log_w: Tensor, values: Tensor) -> Tensor:
    """Σ_m W^m v_m of values [R·M, d] -> [R, d]."""
    return (log_w.exp().unsqueeze(1) @ values.unflatten(0, log_w.shape)).squeeze(1)


def summarise_sets(
    state: SMC2State, means: Tensor, variances: Tensor, rng: Rng
) -> dict[str, Tensor]:
    """Mean, variance and quantiles of the states' mixture over the parameter sets, from the moments
    of each set [R·M, dx]."""
    mean = average_over_sets(state.log_w, means)
    off = means.unflatten(0, state.log_w.shape) - mean.unsqueeze(1)
    variance = average_over_sets(state.log_w, variances) + (
        state.log_w.exp().unsqueeze(1) @ off.square()
    ).squeeze(1)
    r = len(state.log_w)
    w = (state.log_w.flatten().unsqueeze(1) + state.log_wx).exp().view(r, -1)  # [R, M·N]
    # [R, M·N, dx]
    particles = state.x.flatten(0, 1)[ancestors("systematic", w, rng.noise)].unflatten(0, (r, -1))
    lower, upper = quantiles(particles, (0.05, 0.95))
    return {"mean": mean, "variance": variance, "lower": lower, "upper": upper}
