"""Choosing β by how well a filter predicts another realisation of the same simulation."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.contracts.capabilities import StateSpace
from components.contracts.roles import AboveZeroToOne, Info
from components.contracts.sequences import Observation
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import IncompleteResultWarning
from components.registry import register
from components.series.beta_choice.beta_grid import BetaGrid
from components.series.beta_choice.chosen_beta import SelectedBeta
from components.series.filtering.generalised_particle_filter import FilterState
from components.series.scores.predictive_loss import modal, predictive_loss, smallest, weights
from components.series.sequence import Sequence


@dataclass(kw_only=True)
class Selection:
    """Filters in the order of their β in the grid, and the state of the choice."""

    # filter states on the observations; once β is chosen, only that filter continues
    seen: dict[int, FilterState[Any]]
    # on the alternative realisation; empty without one, or once β is chosen
    elsewhere: dict[int, FilterState[Any]]
    losses: Tensor | None = None  # [G, R]; None if not chosen yet
    scored: Tensor = not_checkpointed()  # the observations used for the choice [R, horizon, dy]
    weights: Tensor = not_checkpointed()  # [R, dy]
    alternative: bool = not_checkpointed()


@register("inference", "select_beta")
class SelectBeta(BetaGrid):
    """A robust filter at the β of a grid that predicts best by the thesis' selection criterion.

    β_r = argmin_β median_t dy⁻¹ Σ_j w_j |y'_tj − ŷ'_tj(β)| for each replicate r, w_j = 1/|median_t
    y'_tj|, on the first ``share`` of an alternative realisation y' of the same simulation: other
    observations of the same states, attacked by the same attacker; then the modal β over
    replicates (ties go to the smaller β) filters the observations.  If none can be simulated
    (measured data), y' are the observations themselves, as 6.3.3 allows offline, with a warning.
    Until the choice is made, the filters at all β process both realisations in parallel, with
    particles [R, N, dx] each; earlier results belong to the best β so far.  Raises
    ConfigMismatchError if a median is 0, and any error of the filter.

    Source: Boustati (2021), section 6.3.3, eq. (6.13) and appendix D.3.2."""

    share: AboveZeroToOne

    def init(self, model: StateSpace, problem: Sequence, rng: Rng) -> Selection:
        other = problem.another(rng)
        if other is None:
            message = (
                f"{problem.name}: no other realisation can be simulated; β is chosen on the "
                "filtered observations"
            )
            warnings.warn(IncompleteResultWarning(message), stacklevel=1)
        scored = (problem if other is None else other).observations
        scored = scored[:, : math.ceil(self.share * scored.shape[1])]
        return Selection(
            seen={g: f.init(model, problem, rng) for g, f in enumerate(self.filters)},
            elsewhere={}
            if other is None
            else {g: f.init(model, other, rng) for g, f in enumerate(self.filters)},
            scored=scored,
            weights=weights(scored, self.standardised, "inference.standardised"),
            alternative=other is not None,
        )

    def step(self, state: Selection, batch: Observation, rng: Rng) -> tuple[Selection, Info]:
        info: Info = {}
        # the last one reported is the smallest β, or the chosen one
        for g in reversed(state.seen):
            state.seen[g], info = self.filters[g].step(state.seen[g], batch, rng)
        if state.losses is None:
            y = state.scored[:, batch.t - 1]
            missing = y.isnan().any(1)
            other = Observation(batch.t, y, batch.x, missing if bool(missing.any()) else None)
            for g in state.elsewhere:
                state.elsewhere[g], _ = self.filters[g].step(state.elsewhere[g], other, rng)
            if batch.t == state.scored.shape[1]:
                state.losses = self._losses(state)
                best = modal(smallest(state.losses))
                state.seen = {best: state.seen[best]}
                state.elsewhere = {}
        return state, info

    def _losses(self, state: Selection) -> Tensor:
        """Loss (6.13) of each β, over the times so far; [G, R]."""
        losses = []
        for filtered in (
            filter_state.filtered for filter_state in (state.elsewhere or state.seen).values()
        ):
            predicted = (
                filtered.rows["predicted"].stack_rows(1).to(state.scored.device)
            )  # [R, t, dy]
            losses.append(predictive_loss(state.scored[:, : filtered.t], predicted, state.weights))
        return torch.stack(losses)

    def posterior(self, state: Selection) -> SelectedBeta:
        t = next(iter(state.seen.values())).filtered.t
        if state.losses is not None:
            losses = state.losses
        elif t > 0:
            losses = self._losses(state)
        else:
            losses = state.weights.new_full((len(self.betas), len(state.weights)), math.nan)
        best = smallest(losses)
        mode = modal(best)
        return SelectedBeta(
            **vars(state.seen[mode].filtered.current_posterior()),
            betas=self.betas,
            losses=losses,
            chosen=mode,
            best=best,
            scored_on="an alternative realisation"
            if state.alternative
            else "the observations themselves",
        )
