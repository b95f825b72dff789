"""Base class of simulated sequences for which a released simulator's data exist as well."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from pydantic import PositiveInt, model_validator
from torch import Tensor

from components.contracts.roles import Dataset, Setting, ZeroToOne
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.series.linear_gaussian import StateSource
from components.series.scoring import PredictionScore, Weights
from components.series.sequence import Sequence
from components.series.sequence_data.released import ReleasedSequences

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")
ObservationSource = Literal["own", "first"]


class SimulatedSeries(Dataset[Sequence]):
    """Simulated series of ``n_steps`` times, with R replicates in one tensor."""

    kind = "sequence"
    vectorised = True
    n_steps: PositiveInt

    def observe(
        self,
        rng: Rng,
        setting: Setting,
        x: Tensor,
        means: Tensor,
        disturb: Callable[[Tensor], Tensor],
        missing: float = 0.0,
        **facts: Any,
    ) -> Sequence:
        """Build the sequence from states x and E[y | x], [T, …] if replicates share them, or [R, T,
        …].

        Everything is simulated in float64 on the CPU, states first, so that neither dtype, device
        nor the number of replicates changes the path.

        Args:
            disturb: maps standard normal noise [R, T, dy] to observations of each replicate.
            missing: probability that an observation is missing, independently of the others.
            facts: other fields of the sequence.
        """

        def draw(generator: torch.Generator) -> Tensor:
            shape = (setting.replicates, *means.shape[-2:])
            y = disturb(torch.randn(shape, generator=generator, dtype=torch.float64))
            if missing:
                u = torch.rand(y.shape[:2], generator=generator, dtype=torch.float64)
                y = y.masked_fill((u < missing).unsqueeze(2), math.nan)
            return setting.place(y)

        return Sequence(
            name=self.name,
            states=setting.place(x if x.dim() == 3 else x.unsqueeze(0)),
            observations=draw(rng.data),
            redraw=draw,
            means=setting.place(means if means.dim() == 3 else means.unsqueeze(0)),
            **facts,
        )


def place_system(system: D, setting: Setting) -> D:
    """Convert the tensors of a system (a dataclass) to the device and dtype of the run."""
    tensors = {k: setting.place(v) for k, v in vars(system).items() if isinstance(v, Tensor)}
    return replace(system, **tensors)


class RealisedDataset(SimulatedSeries):
    """Dataset with the keys of the protocol: source of the states, observations per replicate, and
    scoring."""

    traits = {"several_numbers"}
    realisation: Literal["simulated", "released"]
    states: StateSource
    rate: ZeroToOne
    observed: ObservationSource
    scored_on: ObservationSource
    score_weights: Weights
    score_late: bool

    @model_validator(mode="after")
    def _check_realisation(self) -> RealisedDataset:
        if self.states == "own" and self.realisation == "released":
            raise ValueError("states: own requires realisation: simulated")
        for key, value in (("observed", self.observed), ("scored_on", self.scored_on)):
            if value == "first" and self.realisation == "simulated":
                raise ValueError(f"{key}: first requires realisation: released")
        return self

    def cut(self, released: ReleasedSequences, n_steps: int) -> ReleasedSequences:
        """The first ``n_steps`` times of the released realisation.

        Raises:
            ConfigMismatchError: the realisation is shorter.
        """
        if n_steps > (most := len(released.states)):
            raise ConfigMismatchError(
                f"dataset={self.name}: the released realisation has {most:,} time steps; set dataset.n_steps={most}"
            )
        return ReleasedSequences(*(value[:n_steps] for value in vars(released).values()))

    def apply_observation_keys(
        self, sequence: Sequence, released: ReleasedSequences | None
    ) -> Sequence:
        """Apply ``observed`` and the scoring keys to a sequence.

        The replicates of ``sequence`` have their own observations.
        """
        first = None if released is None else released.first.to(sequence.observations)
        scoring = PredictionScore(
            first if self.scored_on == "first" else None, self.score_weights, self.score_late
        )
        if released is None or first is None or self.observed == "own":
            return replace(sequence, scoring=scoring)
        hit = released.corrupted.to(first.device).unsqueeze(1)
        clean = torch.where(hit, sequence.means, first) if sequence.means is not None else None
        every = sequence.observations.shape
        return replace(
            sequence,
            observations=first.expand(every).clone(),
            # replaced observations are never drawn
            clean=None if clean is None else clean.expand(every).clone(),
            scoring=scoring,
        )
