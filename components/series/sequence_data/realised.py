"""Base class of simulated sequences for which a released simulator's data exist as well."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import torch
from pydantic import PositiveInt, model_validator

from components.contracts.roles import Dataset, ZeroToOne
from components.errors import ConfigMismatchError
from components.series.linear_gaussian import StateSource
from components.series.scoring import PredictionScore, Weights
from components.series.sequence import Sequence
from components.series.sequence_data.released import ReleasedSequences

ObservationSource = Literal["own", "first"]


class SimulatedSeries(Dataset[Sequence]):
    """Series of ``n_steps`` simulated times, R replicates of it in one tensor."""

    kind = "sequence"
    vectorised = True
    n_steps: PositiveInt


class RealisedDataset(SimulatedSeries):
    """Keys of the protocol: source of the states, observations per replicate, and scoring."""

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
            raise ValueError("states: own are states of realisation: simulated")
        for key, value in (("observed", self.observed), ("scored_on", self.scored_on)):
            if value == "first" and self.realisation == "simulated":
                raise ValueError(f"{key}: first is a sequence of realisation: released")
        return self

    def cut(self, released: ReleasedSequences, n_steps: int) -> ReleasedSequences:
        """Its first n times.

        Raises:
            ConfigMismatchError: it has not as many.
        """
        if n_steps > (most := len(released.states)):
            raise ConfigMismatchError(
                f"dataset={self.name}: the released realisation has {most:,} times; set dataset.n_steps={most}"
            )
        return released.until(n_steps)

    def apply_observation_keys(
        self, sequence: Sequence, released: ReleasedSequences | None
    ) -> Sequence:
        """A sequence with the observations and scoring that ``observed`` and the scoring keys set.

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
            # never drawn where it was replaced
            clean=None if clean is None else clean.expand(every).clone(),
            scoring=scoring,
        )
