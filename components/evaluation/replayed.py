"""A filter rerun on shifted observations, as victim of an attacker of filters."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from components.contracts.capabilities import AdditiveGaussian, GaussianNoise, LinearGaussian
from components.contracts.posteriors import FilteredStates
from components.contracts.roles import Inference
from components.contracts.streams import Rng, SeparateStreams
from components.contracts.traces import Trace
from components.errors import ConfigMismatchError
from components.series.models.linear_gaussian_ssm import factor
from components.series.posteriors.filtered import Filtering
from components.series.sequence import Sequence

STREAM = 7_000  # first index of the generators used here


class PosteriorProvenance(NamedTuple):
    """Model and inference that produced a posterior."""

    model: object
    inference: Inference[Any, Any, Any, Any]


@runtime_checkable
class Filters(Protocol):
    """The state of a filter."""

    filtered: Filtering


class DifferentiableTrace(Trace):
    """A trace that stores the last rows unchanged, with their autograd graph."""

    def __init__(self) -> None:
        super().__init__()
        self.fresh: list[Tensor] = []

    def append(self, row: Tensor) -> None:
        super().append(row)
        self.fresh.append(row)


@dataclass(frozen=True)
class ReplayedFilterVictim:
    """``FilterVictim``: the run's own model and filter, with the random numbers of ``index``.

    Gradients are propagated back through ``window`` times, from the error at every time to the
    earlier observations in the same window.
    """

    made_by: PosteriorProvenance
    problem: Sequence
    rng: Rng
    weights: Tensor  # of the states [dx]
    unit: Tensor  # Σ^½ [dy, dy]
    window: int
    index: int

    @property
    def observations(self) -> Tensor:
        return self.problem.observations

    @property
    def is_observed(self) -> Tensor:
        return ~self.problem.missing

    @property
    def states(self) -> Tensor:
        assert self.problem.states is not None, (
            "``budget_unit`` and ``state_error_weights`` reject problems without it"
        )
        return self.problem.states

    def shift(self, u: Tensor) -> Tensor:
        """The observations passed to the filter, y + Σ^½ u."""
        return self.observations + u @ self.unit.T

    def filter(self, u: Tensor) -> FilteredStates:
        """Filtered states from shifted observations."""
        model, inference = self.made_by
        problem = replace(self.problem, observations=self.shift(u))
        rng = SeparateStreams(self.rng, STREAM + self.index)
        state = inference.init(model, problem, rng)
        with torch.no_grad():
            for _, batch in problem.batches(
                inference.requires.batch_kind, rng, 0, self.observations.shape[1]
            ):
                state, _ = inference.step(state, batch, rng)
        posterior = inference.posterior(state)
        assert isinstance(posterior, FilteredStates), (
            "check_pairs allows injections only with this posterior"
        )
        return posterior

    def error(self, u: Tensor) -> Tensor:
        return self.weighted_variance(self.filter(u).mean).mean(1)

    def weighted_variance(self, mean: Tensor) -> Tensor:
        """Σ_j w_j (x_tj − x̂_tj)² at every time [R, T]."""
        return ((self.states - mean).square() * self.weights).sum(-1)

    def gradient(self, u: Tensor) -> tuple[Tensor, Tensor]:
        model, inference = self.made_by
        y = self.shift(u).detach().requires_grad_()
        problem = replace(self.problem, observations=y)
        rng = SeparateStreams(self.rng, STREAM + self.index)
        state = inference.init(model, problem, rng)
        if not isinstance(state, Filters):
            raise ConfigMismatchError(
                f"attacker: inference={inference.name} has no differentiable filtered states"
            )
        state.filtered.rows["mean"] = followed = DifferentiableTrace()
        times = y.shape[1]
        total = y.new_zeros(y.shape[0])
        slope = torch.zeros_like(y)
        for first in range(0, times, self.window):
            last = min(first + self.window, times)
            with torch.enable_grad():
                for _, batch in problem.batches(inference.requires.batch_kind, rng, first, last):
                    state, _ = inference.step(state, batch, rng)
                means = torch.stack(followed.fresh, 1)  # [R, window, dx]
                # [R]
                errors = ((self.states[:, first:last] - means).square() * self.weights).sum(
                    (1, 2)
                ) / times
            if not errors.requires_grad:
                raise ConfigMismatchError(
                    f"attacker.access=gradient: inference={inference.name} has no gradient with "
                    f"respect to the observations; use access=queries"
                )
            slope += torch.autograd.grad(errors.sum(), y)[0].nan_to_num(nan=0.0)
            total += errors.detach()
            state = _detach(state)
            followed.fresh.clear()
        return total, (slope @ self.unit) * self.is_observed.unsqueeze(-1)


def _detach(state: Any) -> Any:
    """The state of a filter with detached tensors."""
    state.filtered.log_normaliser = state.filtered.log_normaliser.detach()
    fields = {f.name: vars(state)[f.name] for f in dataclasses.fields(state) if f.init}
    return replace(
        state, **{name: v.detach() for name, v in fields.items() if isinstance(v, Tensor)}
    )


def budget_unit(
    made_by: PosteriorProvenance, problem: Sequence, sd: float | None, attacker: str
) -> Tensor:
    """Σ^½ [dy, dy], the unit of budgets, from the system that generated the data or from the model.

    If ``sd`` is given, the unit is ``sd`` I.

    Raises:
        ConfigMismatchError: neither has Σ, and ``sd`` is not given.
    """
    if sd is not None:
        y = problem.observations
        return sd * torch.eye(y.shape[2], device=y.device, dtype=y.dtype)
    for thing in (problem.system, made_by.model):
        if isinstance(thing, GaussianNoise | AdditiveGaussian | LinearGaussian):
            return factor(thing.Sigma, "Σ")
    raise ConfigMismatchError(
        f"attacker={attacker}: neither dataset={problem.name} nor the model defines the "
        f"observation noise; set attacker.unit to its standard deviation"
    )


def state_error_weights(problem: Sequence, error: str, attacker: str) -> Tensor:
    """Weights w_j [dx] of the squared errors of the states.

    Raises:
        ConfigMismatchError: the true states are not known.
    """
    if problem.states is None:
        raise ConfigMismatchError(
            f"attacker={attacker}: requires the true states, which dataset={problem.name} does not "
            f"have"
        )
    square = problem.states.square().mean((0, 1))  # [dx]
    return (1 / square if error == "nmse" else torch.ones_like(square)) / len(square)
