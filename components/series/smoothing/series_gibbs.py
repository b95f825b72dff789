"""Gibbs sampling of the states and the parameters of a whole series."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.capabilities import SeriesConditionals
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.sequences import Series
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.contracts.traces import Trace, is_kept_step
from components.errors import NumericalError
from components.inference.chains import stack_kept
from components.posteriors.draws import Draws
from components.registry import register
from components.series.posteriors.smoothed import SampledSeries
from components.series.sequence import Sequence


@dataclass(kw_only=True)
class Sweeps:
    """C chains for each of R replicates: their positions and stored draws."""

    model: SeriesConditionals = not_checkpointed()
    times: int  # T
    begun: Tensor  # initial parameters of the chains [R, C, P]
    theta: Tensor  # current parameters [R, C, P]
    t: int = 0  # sweeps done
    kept: Trace = field(default_factory=Trace)  # rows of parameters [R, C, P], on the CPU
    kept_states: Trace = field(default_factory=Trace)  # rows of x_1 … x_T [R, C, T, dx], on the CPU


@register("inference", "series_gibbs")
class SeriesGibbs(Inference[SeriesConditionals, Sequence, Series, Sweeps]):
    """Gibbs sampler over a whole series, C chains for each of R replicates in parallel.

        x_0:T ~ p(x_0:T | θ, y_1:T),   then   θ ~ p(θ | x_0:T, y_1:T),   one sweep a step

    θ [R, C, P], states [R, C, T + 1, dx]; the model provides the conditionals.  After
    ``burn_in`` sweeps every ``thinning``-th sweep is stored, with R·C·(T·dx + P) numbers.

    Raises:
        NumericalError: a conditional draws a value that is not finite.

    Source: Gallego (2021), section 1.2.2; Carter and Kohn (1994).
    """

    requires = Requirements(
        kinds={"sequence"},
        batch_kind="series",
        capabilities={SeriesConditionals},
    )
    chains: PositiveInt
    burn_in: NonNegativeInt
    thinning: PositiveInt

    def init(self, model: SeriesConditionals, problem: Sequence, rng: Rng) -> Sweeps:
        _, series = next(problem.batches("series", rng, 0, 1))
        assert isinstance(series, Series)
        theta = model.start(series, self.chains, rng.init)
        return Sweeps(model=model, times=series.y.shape[1], begun=theta, theta=theta)

    @torch.no_grad()
    def step(self, state: Sweeps, batch: Series, rng: Rng) -> tuple[Sweeps, Info]:
        states = state.model.draw_states(batch, state.theta, rng.noise)  # [R, C, T + 1, dx]
        theta = state.model.draw_parameters(batch, states, state.theta, rng.noise)
        if not torch.isfinite(theta.sum() + states.sum()):
            raise NumericalError(
                "a conditional drew a value that is not finite", "change the priors of the model"
            )
        t = state.t + 1
        if is_kept_step(t, self.burn_in, self.thinning):
            state.kept.append(theta.cpu())
            state.kept_states.append(states[:, :, 1:].cpu())
        by_name = {name: theta[..., j].mean() for j, name in enumerate(state.model.parameter_names)}
        return replace(state, theta=theta, t=t), by_name | {"draws": len(state.kept)}

    def posterior(self, state: Sweeps) -> SampledSeries:
        r, c, _ = state.theta.shape
        one_path = state.theta.new_empty(r, c, state.times, state.model.state_dim)
        states = stack_kept(state.kept_states, one_path, 2)  # [R, C, N, T, dx]
        theta = stack_kept(state.kept, state.theta, 2)  # [R, C, N, P]
        names = list(state.model.parameter_names)
        return SampledSeries.summarise(
            states, Draws(theta.flatten(0, 1), state.begun.flatten(0, 1), names, replicates=r)
        )
