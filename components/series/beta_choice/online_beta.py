"""Choice of β at every time, by recent prediction errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from pydantic import PositiveInt, model_validator
from torch import Tensor

from components.contracts.capabilities import StateSpace
from components.contracts.roles import Info
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.maths.spacing import row_numbers
from components.registry import register
from components.series.beta_choice.beta_grid import BetaGrid
from components.series.beta_choice.chosen_beta import OnlineBeta
from components.series.filtering.generalised_particle_filter import FilterState
from components.series.posteriors.filtered import Filtering
from components.series.scores.predictive_loss import smallest, weights
from components.series.sequence import Sequence


@dataclass(kw_only=True)
class OnlineBetaState:
    """The filters at all β, their recent prediction errors, and the summaries of the best ones."""

    filters: list[FilterState[Any]]  # [G]
    errors: Tensor  # |y − ŷ| of the last W times, NaN: not observed [W, G, R, dy]
    observations: Tensor  # of the last W times [W, R, dy]
    filtered: Filtering
    index: Trace = field(default_factory=Trace)  # index of the β of each time, rows [R]


@register("inference", "online_beta")
class OnlineBetaFilter(BetaGrid):
    """Robust filter that uses, per time and replicate, the β with the best recent predictions.

    β_t = argmin_β median_{s = t−W … t−1} dy⁻¹ Σ_j w_j |y_sj − ŷ_sj(β)|, with w_j = 1/|median_s
    y_sj|; ties go to the smaller β.  The β come from a grid.  The prediction ŷ_t and the summaries
    of time t come from the filter at β_t, which was chosen before y_t was observed.  The filters at
    all β run in parallel, with particles [R, N, dx] each. During the first W times β is
    ``first_beta``.  Raises ConfigMismatchError if a median is 0, and any error of the filter.

    Source: Boustati (2021), section 6.3.3, eq. (6.13), over a window.
    """

    window: PositiveInt
    first_beta: float

    @model_validator(mode="after")
    def _check_first_beta(self) -> OnlineBetaFilter:
        if self.first_beta not in self.betas:
            raise ValueError(f"first_beta: {self.first_beta:g} is not one of betas, {self.betas}")
        return self

    def init(self, model: StateSpace, problem: Sequence, rng: Rng) -> OnlineBetaState:
        r, _, dy = problem.observations.shape
        nothing = problem.observations.new_full((self.window, r, dy), torch.nan)
        return OnlineBetaState(
            filters=[f.init(model, problem, rng) for f in self.filters],
            errors=nothing.unsqueeze(1).repeat(1, len(self.betas), 1, 1),
            observations=nothing,
            filtered=Filtering(log_normaliser=problem.observations.new_zeros(r), evidence=False),
        )

    def _best(self, state: OnlineBetaState) -> Tensor:
        """Index of β_t in the grid for each replicate, given earlier observations; [R]."""
        is_observed = ~state.observations.isnan().any(2)  # [W, R]
        has_data = is_observed.any(0)
        best = torch.full_like(has_data, self.betas.index(self.first_beta), dtype=torch.long)
        if state.filtered.t < self.window or not bool(has_data.any()):
            return best
        w = weights(
            state.observations[:, has_data].transpose(0, 1),
            self.standardised,
            "inference.standardised",
        )
        errors = (w * state.errors[:, :, has_data]).mean(3)  # [W, G, R']
        best[has_data] = smallest(errors.nanquantile(0.5, dim=0))
        return best

    def step(
        self, state: OnlineBetaState, batch: Observation, rng: Rng
    ) -> tuple[OnlineBetaState, Info]:
        best = self._best(state)
        infos: list[Info] = []
        for g, f in enumerate(self.filters):
            state.filters[g], info = f.step(state.filters[g], batch, rng)
            infos.append(info)
        rows = row_numbers(best)

        def of_best(values: list[Tensor]) -> Tensor:  # G of [R, …] -> [R, …]
            return torch.stack(values)[best, rows]

        every = [filter_state.filtered.newest() for filter_state in state.filters]
        predicted = torch.stack([row["predicted"] for row in every])  # [G, R, dy]
        summaries = {name: of_best([row[name] for row in every]) for name in every[0]}
        state.filtered.add(batch.t, **summaries)
        gained = of_best([info["log_normaliser"] for info in infos])
        state.filtered.log_normaliser += gained
        place = (batch.t - 1) % self.window
        state.errors[place] = (batch.y - predicted).abs()
        state.observations[place] = batch.y
        state.index.append(best)
        beta = batch.y.new_tensor(self.betas)[best]
        return state, {
            "log_normaliser": gained,
            "beta": beta,
            "ess": of_best([info["ess"] for info in infos]),
        }

    def posterior(self, state: OnlineBetaState) -> OnlineBeta:
        filtered = state.filtered.current_posterior()
        index = (
            state.index.stack_rows(1)
            if filtered.t
            else torch.empty(len(filtered.mean), 0, dtype=torch.long)
        )
        return OnlineBeta(**vars(filtered), betas=self.betas, index=index.to(filtered.mean.device))
