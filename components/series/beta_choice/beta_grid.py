"""Base class for choosing β: the grid, and the filter at each of its values."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, NonNegativeFloat, ValidationError, model_validator

from components.contracts.capabilities import StateSpace
from components.contracts.posteriors import Analyses, FilteredStates, WritesFiles
from components.contracts.requirements import Requirements
from components.contracts.roles import Increasing, Inference
from components.series.filtering.generalised_particle_filter import FilterState
from components.series.filtering.particle_filter import FilterBasedMethod
from components.series.scores.predictive_loss import Standardised
from components.series.sequence import Sequence

AnyFilter = Inference[Any, Any, Any, FilterState[Any]]


class BetaGrid(FilterBasedMethod, Inference[Any, Sequence, Any, Any]):
    """A filter with a key ``beta``, run at every value of a grid, observation by observation."""

    requires = Requirements(
        kinds={"sequence"},
        batch_kind="observation",
        capabilities={StateSpace},
    )
    provides = {FilteredStates, Analyses, WritesFiles}
    differentiable = False  # it switches between filters
    betas: Annotated[list[NonNegativeFloat], Field(min_length=1), Increasing]
    standardised: Standardised

    @model_validator(mode="after")
    def _fits(self) -> BetaGrid:
        if "beta" not in type(self.filter).model_fields:
            raise ValueError(
                f"filter: {self.filter.name} has no β to choose; use beta_bootstrap_filter"
            )
        _ = self.filters
        return self

    @cached_property
    def filters(self) -> list[AnyFilter]:
        """The filter at each β [G]."""
        out = []
        for beta in self.betas:
            try:
                out.append(type(self.filter)(**(dict(self.filter) | {"beta": beta})))
            except ValidationError as error:
                message = error.errors()[0]["msg"]
                raise ValueError(
                    f"betas: {beta:g} is not allowed for {self.filter.name} ({message[0].lower()}{message[1:]})"
                ) from None
        return out
