"""Shared code of particle smoothers: forward filter, its particles, backward summaries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from components.contracts.capabilities import GaussianNoise, TransitionDensity
from components.contracts.posteriors import Signal
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.sequences import Observation
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.errors import NumericalError
from components.maths.exponential.standard_draws import normal_like
from components.maths.particles.order_statistics import quantiles
from components.maths.particles.resampling import ancestors
from components.series.filtering.generalised_particle_filter import FilterState
from components.series.filtering.particle_filter import FilterBasedMethod
from components.series.models.linear_gaussian_ssm import factor
from components.series.posteriors.smoothed import SmoothedSeries
from components.series.sequence import Sequence


@dataclass(kw_only=True)
class ForwardParticles:
    """A running particle filter, with its weighted particles at every time before resampling."""

    filter: FilterState[TransitionDensity]
    seed: int  # of the backward pass, so that each call of the posterior repeats it
    start: Tensor  # particles of time 0, equally weighted [R, N, dx]
    x: Trace = field(default_factory=Trace)  # rows [R, N, dx]
    log_w: Trace = field(default_factory=Trace)  # normalised, rows [R, N]
    y: Trace = field(default_factory=Trace)  # rows [R, dy]
    # the backward pass from the last time of ``x``
    smoothed: SmoothedSeries | None = not_checkpointed()


class FilteredParticles(NamedTuple):
    """Particles of p(x_t | y_1:T)."""

    t: int  # 1 … T
    x: Tensor  # [R, M, dx]
    w: Tensor | None  # normalised [R, M]; None means equal


class ParticleSmoother(
    FilterBasedMethod, Inference[TransitionDensity, Sequence, Observation, ForwardParticles]
):
    """Particle smoother with a forward filter; a subclass defines the backward pass.

    The backward pass runs when the posterior is requested, with a seed from the state, so
    that the result is always the same.

    Raises:
        NumericalError: no earlier particle can move to a later one.
    """

    requires = Requirements(
        kinds={"sequence"},
        batch_kind="observation",
        capabilities={TransitionDensity},
    )
    mixes = False  # no chains

    def init(self, model: TransitionDensity, problem: Sequence, rng: Rng) -> ForwardParticles:
        start: FilterState[TransitionDensity] = self.filter.init(model, problem, rng)
        device = rng.init.device
        seed = int(torch.randint(2**62, (), generator=rng.init, device=device))
        return ForwardParticles(
            filter=start, seed=seed, start=start.particles.clone(), smoothed=None
        )

    @torch.no_grad()
    def step(
        self, state: ForwardParticles, batch: Observation, rng: Rng
    ) -> tuple[ForwardParticles, Info]:
        now: FilterState[TransitionDensity]
        now, info = self.filter.step(state.filter, batch, rng)
        assert now.weighted is not None  # set after a step of the filter
        state.filter = now
        state.smoothed = None
        state.x.append(now.weighted.x)
        state.log_w.append(now.weighted.log_w)
        state.y.append(batch.y)
        return state, info

    @torch.no_grad()
    def posterior(self, state: ForwardParticles) -> SmoothedSeries:
        if len(state.x) == 0:
            return SmoothedSeries.empty_smoothed(state.start)
        if state.smoothed is None:
            generator = torch.Generator(state.start.device).manual_seed(state.seed)
            smoothed = _summarise(state.filter.model, self.backwards(state, generator), generator)
            state.smoothed = replace(smoothed, ess=state.filter.filtered.current_posterior().ess)
        return state.smoothed

    @abstractmethod
    def backwards(
        self, state: ForwardParticles, generator: torch.Generator
    ) -> Iterator[FilteredParticles]:
        """Particles of the smoothing distribution for each time, in any order of times."""


def _summarise(
    model: TransitionDensity, clouds: Iterator[FilteredParticles], generator: torch.Generator
) -> SmoothedSeries:
    """Means and variances of weighted particles, and quantiles of resampled ones, as in the
    filters.

    Raises NumericalError if a weight is NaN."""
    noise = factor(model.Sigma, "Σ") if isinstance(model, GaussianNoise) else None
    rows_by_time: dict[int, dict[str, Tensor]] = {}
    for t, x, w in clouds:
        if w is None:
            mean = x.mean(1, keepdim=True)
            samples = x
            variance = (x - mean).square().mean(1)
        else:
            if not torch.isfinite(w.sum()):
                raise NumericalError(
                    f"smoothing weights are NaN at t = {t}", "raise inference.filter.particles"
                )
            mean = w.unsqueeze(1) @ x
            variance = (w.unsqueeze(1) @ (x - mean).square()).squeeze(1)
            samples = (
                x.flatten(0, 1).index_select(0, ancestors("systematic", w, generator)).view_as(x)
            )
        lower, upper = quantiles(samples, (0.05, 0.95))
        row = {"mean": mean.squeeze(1), "variance": variance, "lower": lower, "upper": upper}
        if noise is not None:
            expected = model.observation_mean(x, t)  # [R, M, dy]
            y_means = expected if w is None else model.observation_mean(samples, t)
            z = normal_like(y_means, generator)
            row["low_y"], row["high_y"] = quantiles(y_means + z @ noise.T, (0.05, 0.95))
            row["signal"] = (
                expected.mean(1) if w is None else (w.unsqueeze(1) @ expected).squeeze(1)
            )
        rows_by_time[t] = row
    rows: dict[str, Any] = {
        name: torch.stack([rows_by_time[t][name] for t in sorted(rows_by_time)], 1)
        for name in rows_by_time[1]
    }
    signal = None if noise is None else Signal(rows["signal"], rows["low_y"], rows["high_y"])
    return SmoothedSeries(rows["mean"], rows["variance"], rows["lower"], rows["upper"], signal)
