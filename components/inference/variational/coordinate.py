"""Cycles of a closed-form coordinate ascent, from several starts in parallel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities.mean_field import ClosedFormAscent, Factors
from components.contracts.costs.counts import count
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import rebuilt
from components.contracts.streams import Rng, seed_from
from components.contracts.traces import Trace
from components.errors import NumericalError
from components.inference.variational.factor_posterior import ObjectiveHistory
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled

M = TypeVar("M")
ROUNDING = 1e4  # units in the last place of the objective that a cycle may lose


@dataclass(kw_only=True)
class CoordinateState:
    """S starts on their way up."""

    model: object = rebuilt()
    ascent: ClosedFormAscent = rebuilt()
    factors: Factors  # [S, …] each
    objective: Tensor  # [S]
    # of the draws that the posterior returns: always the same, so that scores move as q does
    seed: int
    by_cycle: Trace = field(default_factory=Trace)  # rows [S], on the CPU


def make_contiguous(factors: Factors) -> Factors:
    """The same in memory of their own, as a checkpoint brings them back: products of others round
    otherwise."""
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
    """θ ~ q [n, P], by the same random numbers whenever it is asked."""
    device = state.objective.device
    return state.ascent.draw(factors, n, torch.Generator(device).manual_seed(state.seed))


class CoordinateInference(
    Inference[M, Supervised | Unlabelled, RowBatch, CoordinateState], Generic[M]
):
    """Base of coordinate ascents; a step is one cycle of every start."""

    requires = Requirements(
        kinds={"supervised", "unlabelled"},
        batch_kind="whole",
        capabilities_by_kind={"supervised": {"theta_predictive"}},
    )

    starts: PositiveInt

    @torch.no_grad()
    def init_starts(
        self, model: M, ascent: ClosedFormAscent, problem: Supervised | Unlabelled, rng: Rng
    ) -> CoordinateState:
        """S starts where the model puts them.

        Raises NumericalError where the objective of one is not finite."""
        factors = make_contiguous(ascent.start(problem.train, self.starts, rng.init))
        objective = ascent.objective(factors, problem.train)
        if not torch.isfinite(objective).all():
            raise NumericalError(
                "the objective is not finite where it starts",
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

        Raises NumericalError where the objective of one falls by more than rounding, or is not
        finite: the updates are each at an optimum, so that it cannot."""
        factors = make_contiguous(state.ascent.cycle(state.factors, batch))
        objective = state.ascent.objective(factors, batch)
        count(forwards=len(objective) * batch.n_rows)
        allowed = (
            ROUNDING * torch.finfo(objective.dtype).eps * (state.objective.abs() + batch.n_rows)
        )
        gain = objective - state.objective
        if not (gain >= -allowed).all():  # NaN is neither
            raise NumericalError(
                f"the objective of a start fell, by {float(-gain.nan_to_num(nan=-torch.inf).min()):g} nats",
                "use dtype=float64, or a wider prior of the model: the updates lose their digits",
            )
        state.by_cycle.append(objective.cpu())
        best = objective.argmax()
        info = {"elbo": objective[best], "gain": gain[best], "lowest_start": objective.min()}
        return replace(state, factors=factors, objective=objective), info
