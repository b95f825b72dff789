"""Cycles of closed-form coordinate ascent, from several starts in parallel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import ThetaPredictive
from components.contracts.capabilities.mean_field import ClosedFormAscent, Factors
from components.contracts.costs.counts import count
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng, seed_from
from components.contracts.traces import Trace
from components.errors import NumericalError
from components.inference.variational.factor_posterior import ObjectiveHistory
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled

M = TypeVar("M")
# decrease of the objective, in units in the last place, that a cycle may cause by rounding
ROUNDING = 1e4


@dataclass(kw_only=True)
class CoordinateState:
    """S starts of the ascent."""

    model: object = not_checkpointed()
    ascent: ClosedFormAscent = not_checkpointed()
    factors: Factors  # [S, …] each
    objective: Tensor  # [S]
    # seed of the posterior's draws: fixed, so that scores change only with q
    seed: int
    by_cycle: Trace = field(default_factory=Trace)  # rows [S], on the CPU


def make_contiguous(factors: Factors) -> Factors:
    """Contiguous copies in the memory layout of a loaded checkpoint, because rounding of products
    depends on the layout."""
    return {name: value.contiguous() for name, value in factors.items()}


def best_start(state: CoordinateState) -> tuple[Factors, float]:
    """Factors of the start with the highest objective, S = 1, and that objective."""
    best = int(state.objective.argmax())
    return {name: value[best : best + 1] for name, value in state.factors.items()}, float(
        state.objective[best]
    )


def path(state: CoordinateState, title: str) -> ObjectiveHistory:
    """The objective by cycle [T, S]."""
    rows = (
        state.by_cycle.rows.clone() if len(state.by_cycle) else torch.zeros(0, len(state.objective))
    )
    return ObjectiveHistory(title, rows)


def sample_with_stored_seed(state: CoordinateState, factors: Factors, n: int) -> Tensor:
    """θ ~ q [n, P], with the same random numbers on every call."""
    device = state.objective.device
    return state.ascent.draw(factors, n, torch.Generator(device).manual_seed(state.seed))


class CoordinateInference(
    Inference[M, Supervised | Unlabelled, RowBatch, CoordinateState], Generic[M]
):
    """Base of coordinate ascents; a step is one cycle of every start."""

    requires = Requirements(
        kinds={"supervised", "unlabelled"},
        batch_kind="whole",
        capabilities_by_kind={"supervised": {ThetaPredictive}},
    )

    starts: PositiveInt

    @torch.no_grad()
    def init_starts(
        self, model: M, ascent: ClosedFormAscent, problem: Supervised | Unlabelled, rng: Rng
    ) -> CoordinateState:
        """S starts chosen by the model.

        Raises NumericalError if the objective of a start is not finite."""
        factors = make_contiguous(ascent.start(problem.train, self.starts, rng.init))
        objective = ascent.objective(factors, problem.train)
        if not torch.isfinite(objective).all():
            raise NumericalError(
                "the objective is not finite at a start",
                "change the prior of the model, or seed",
            )
        seed = seed_from(rng.init)
        return CoordinateState(
            model=model, ascent=ascent, factors=factors, objective=objective, seed=seed
        )

    @torch.no_grad()
    def step(
        self, state: CoordinateState, batch: RowBatch, rng: Rng
    ) -> tuple[CoordinateState, Info]:
        """One cycle of every start.

        Raises NumericalError if an objective decreases by more than rounding, or is not finite,
        which exact updates exclude."""
        factors = make_contiguous(state.ascent.cycle(state.factors, batch))
        objective = state.ascent.objective(factors, batch)
        count(forwards=len(objective) * batch.n_rows)
        allowed = (
            ROUNDING * torch.finfo(objective.dtype).eps * (state.objective.abs() + batch.n_rows)
        )
        gain = objective - state.objective
        if not (gain >= -allowed).all():  # also True for NaN
            raise NumericalError(
                f"the objective of a start decreased by "
                f"{float(-gain.nan_to_num(nan=-torch.inf).min()):g} nats",
                "use dtype=float64, or a wider prior of the model, because the updates lose "
                "precision",
            )
        state.by_cycle.append(objective.cpu())
        best = objective.argmax()
        info = {"elbo": objective[best], "gain": gain[best], "lowest_start": objective.min()}
        return replace(state, factors=factors, objective=objective), info
