"""A flight over known terrain, observed by its height above ground and its distance from the point
of take-off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.capabilities import TerrainAided
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.maths.compiled.elevation_map import ElevationMapVersion, elevation
from components.registry import register
from components.series.figures.coverage import coverage
from components.series.figures.effective_size import effective_size
from components.series.figures.trajectory import trajectory
from components.series.linear_gaussian import draw_drive, walk
from components.series.sequence import Sequence
from components.series.sequence_data import released
from components.series.sequence_data.realised import RealisedDataset, place_system

Six = Annotated[list[float], Field(min_length=6, max_length=6)]
StateStandardDeviations = Annotated[list[PositiveFloat], Field(min_length=6, max_length=6)]


@dataclass(frozen=True)
class Flight(TerrainAided):
    """System that generated the observations."""

    def A(self) -> Tensor:
        """Positions move by Δτ times their velocities [6, 6]."""
        moves = torch.eye(6, dtype=self.m0.dtype)
        moves[:3, 3:] = self.delta * torch.eye(3, dtype=self.m0.dtype)
        return moves

    def observe(self, x: Tensor) -> Tensor:
        """h(x) = (z − DEM(x, y), √((x − x_0)² + (y − y_0)²)) of states [..., 6] -> [..., 2]."""
        away = x[..., :2] - self.m0[:2]
        height = x[..., 2] - elevation(x[..., 0], x[..., 1], self.dem)
        return torch.stack([height, away.norm(dim=-1)], -1)


@register("dataset", "tan")
class TerrainAidedNavigation(RealisedDataset):
    """Simulated terrain-aided navigation: an aircraft over a known elevation map.

    x_t = A x_{t−1} + N(0, Q), y_t = h(x_t) + N(0, s² I), h(x) = (z − DEM(x, y), distance from the
    point of take-off).  The states are simulated from x_0, [1, T, 6] for all R replicates or, with
    ``states: own``, [R, T, 6]; each replicate has its own observations [R, T, 2].  ``realisation:
    released`` takes the states, and a first sequence of corrupted observations, from the code
    published with the thesis, in which x_0 itself is observed first.  Raises ConfigMismatchError if
    the released realisation is shorter.

    Source: Boustati (2021), section 6.5.2 and appendix D.3.4."""

    simulates = {TerrainAided}
    delta: PositiveFloat
    x0: Six
    motion_sd: StateStandardDeviations
    noise_sd: PositiveFloat
    prior_sd: StateStandardDeviations
    dem: ElevationMapVersion

    def flight(self) -> Flight:
        """The system in float64."""
        x0, motion, prior = (
            torch.tensor(v, dtype=torch.float64) for v in (self.x0, self.motion_sd, self.prior_sd)
        )
        return Flight(
            self.delta, self.dem, (self.x0[0], self.x0[1]), motion, self.noise_sd, x0, prior
        )

    def load(self, rng: Rng, setting: Setting) -> Sequence:
        flight = self.flight()
        A = flight.A()
        fixed = None
        if self.realisation == "released":
            realisation = released.tan(
                A, flight.motion_sd, flight.m0, self.noise_sd, flight.observe, self.rate
            )
            fixed = self.cut(realisation, self.n_steps)
            path = fixed.states
        else:
            drive = draw_drive(self.states, setting.replicates, self.n_steps, 6, rng.data)
            path = walk(A, flight.m0, flight.motion_sd * drive)
        means = flight.observe(path)  # [T, 2] or [R, T, 2]

        sequence = self.observe(
            rng,
            setting,
            path,
            means,
            lambda noise: means + self.noise_sd * noise,
            system=place_system(flight, setting),
            state_names=[
                "position x",
                "position y",
                "height",
                "velocity x",
                "velocity y",
                "vertical velocity",
            ],
            state_units=["m"] * 3 + ["m/s"] * 3,
            figures=[trajectory, effective_size, coverage],
        )
        return self.apply_observation_keys(sequence, fixed)
