"""One pass of a particle filter over a series for each of K parameter sets, and trajectories drawn
from its particles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from components.contracts.capabilities import TransitionDensity
from components.contracts.roles import Inference
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.maths.spacing import row_numbers
from components.series.filtering.generalised_particle_filter import FilterState, WeightedParticles
from components.series.sequence import Sequence


def repeat_observations(problem: Sequence, times: int) -> Sequence:
    """The observations of each replicate repeated ``times`` times, [R·C, T, dy], without the
    truth."""
    observations = problem.observations.repeat_interleave(times, 0)
    return replace(
        problem,
        observations=observations,
        states=None,
        means=None,
        clean=None,
        system=None,
        figures=[],
    )


def passing(
    method: Inference, model: object, problem: Sequence, t: int, rng: Rng
) -> Iterator[FilterState]:
    """States of the filter after each of y_1 … y_t.

    Raises NumericalError if the filter does."""
    state: FilterState = method.init(model, problem, rng)
    for _, batch in problem.batches("observation", rng, 0, t):
        assert isinstance(batch, Observation)
        state, _ = method.step(state, batch, rng)
        yield state


def min_ess(state: FilterState) -> Tensor:
    """The smallest effective sample size over the times so far, for each parameter set [K]."""
    return state.filtered.rows["ess"].stack_rows(1).amin(1)


def trajectories(
    model: TransitionDensity, clouds: list[WeightedParticles], generator: torch.Generator
) -> Tensor:
    """A trajectory x_1 … x_T for each parameter set, drawn by backward simulation; [K, T, dx].

        b_T ~ w_T,   P(b_t = n | x_{t+1}) ∝ w_t^n f(x_{t+1} | x_t^n)

    Source: Whiteley (2010), in the discussion of Andrieu, Doucet and Holenstein (2010)."""
    path: list[Tensor] = []
    for t in range(len(clouds), 0, -1):
        x = clouds[t - 1].x
        log_w = clouds[t - 1].log_w
        if path:
            log_w = log_w + model.log_transition(path[-1].unsqueeze(1).expand_as(x), x, t + 1)
        u = torch.rand(log_w.shape, generator=generator, device=x.device, dtype=torch.float64)
        # Gumbel-max trick
        indices = (log_w.double() - (-u.log()).log()).argmax(1)
        path.append(x[row_numbers(x), indices])  # [K, dx]
    return torch.stack(path[::-1], 1)
