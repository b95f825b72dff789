"""Simulated weekly sales of a restaurant chain that advertises, instead of the thesis' private
series."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.roles import (
    AboveZeroToOne,
    AtLeastTwo,
    Dataset,
    NonEmptyList,
    Setting,
    ZeroToBelowOne,
)
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.registry import register
from components.series.budget.budget import Budget
from components.series.forecast_data.retail_world import CHANNELS, REGRESSORS, RetailWorld
from components.series.forecasting import Forecasting, Origin, split
from components.series.maths.advertising import saturate
from components.series.sequence import Sequence


@dataclass(frozen=True)
class RetailTruth:
    """Data-generating truth of the series: ``KnownParameters``, ``KnownResponse``."""

    parameters: dict[str, float]
    coefficients: dict[str, float]  # of every candidate; 0: irrelevant
    q: Tensor  # [c]
    decay: float

    def effect(self, horizon: int) -> Tensor:
        """Effect of a unit of u_{t+j} on y_{t+1+h}: q (1 − δ)^{h−j}, j ≤ h [k, k, c]."""
        lag = torch.arange(horizon).view(-1, 1) - torch.arange(horizon)
        retention = torch.where(lag >= 0, (1 - self.decay) ** lag.clamp_min(0).double(), 0.0)
        return retention.unsqueeze(-1) * self.q


@register("dataset", "retail_sim")
class RetailSim(Dataset[Forecasting]):
    """Sales of T weeks in million EUR, with holidays, sport, weather, economy and spends on seven
    channels.

        y_t = A_t + L_t + x_t'β + ε_t,   A_{t+1} = (1 − δ) A_t + Σ_i q_i u_it + N(0, σ_A²),   L_{t+1} = L_t + N(0, σ_L²)

    ε_t ~ N(0, σ²) or Student's t.  A channel with a half-saturation h has u/(h + u) instead of u.
    The calendar is real; weather, economy and spends are simulated (``retail_world``); each
    replicate is another series.  The observations are y [1, n_train, 1] with regressors x [7] and
    the inputs u of ``channels``; the weeks after them are to be forecast, with x and u known.
    ``missing_share`` of the observed weeks lose their y.  The thesis' series is private: nothing
    here was fitted to it, and results are not comparable with its tables.

    Raises ConfigMismatchError if a regressor or channel is unknown, or all weeks are missing.

    Source: Gallego (2021), section 1.2, eqs. (1.4), (1.5)."""

    kind = "sequence"
    traits = {"unknown_states"}

    n_steps: PositiveInt
    n_train: AtLeastTwo
    origin: Origin
    channels: NonEmptyList[str]
    effects: dict[str, float]
    q: dict[str, float]
    half: dict[str, PositiveFloat]
    decay: AboveZeroToOne
    goodwill_sd: NonNegativeFloat
    level: float
    level_sd: NonNegativeFloat
    observation_sd: PositiveFloat
    nu: Annotated[float, Field(gt=2)] | None
    missing_share: ZeroToBelowOne
    budget: Budget

    def _check(self) -> None:
        """Raise ConfigMismatchError for inconsistent keys."""
        named: dict[str, tuple[Collection[str], Collection[str]]] = {
            "channels": (self.channels, CHANNELS),
            "q": (self.q, CHANNELS),
            "half": (self.half, CHANNELS),
            "effects": (self.effects, REGRESSORS),
        }
        for key, (names, allowed) in named.items():
            for name in names:
                if name not in allowed:
                    raise ConfigMismatchError(
                        f"dataset.{key}: {name} is not among {', '.join(allowed)}"
                    )
        if self.half and self.budget.total is not None:
            raise ConfigMismatchError(
                "dataset.half: the best plan is unknown if channels saturate; set dataset.half={} "
                "or dataset.budget.total=null"
            )
        if self.n_train >= self.n_steps:
            raise ConfigMismatchError(
                f"dataset.n_train={self.n_train}: must be below n_steps={self.n_steps}, to leave weeks to forecast"
            )

    def load(self, rng: Rng, setting: Setting) -> Forecasting:
        self._check()
        generator = rng.data
        weeks = self.n_steps
        world = RetailWorld(weeks, generator)
        X = torch.stack([draw(world) for draw in REGRESSORS.values()], 1)  # [T, 7]
        U = torch.stack([world.bursts(*spends) for spends in CHANNELS.values()], 1)  # [T, 7]
        beta, q = (
            torch.tensor([values.get(name, 0.0) for name in names], dtype=torch.float64)
            for values, names in ((self.effects, REGRESSORS), (self.q, CHANNELS))
        )
        flows = U.clone()
        for name, half in self.half.items():
            j = list(CHANNELS).index(name)
            flows[:, j] = saturate(U[:, j], half, 1.0)
        noise = torch.randn(2, weeks, generator=generator, dtype=torch.float64)
        goodwill = torch.empty(weeks, dtype=torch.float64)
        goodwill[0] = flows.mean(0) @ q / self.decay
        for t in range(1, weeks):
            goodwill[t] = (
                (1 - self.decay) * goodwill[t - 1]
                + flows[t - 1] @ q
                + self.goodwill_sd * noise[0, t]
            )
        steps = self.level_sd * noise[1]
        level = self.level + steps.cumsum(0) - steps[0]
        signal = goodwill + level + X @ beta
        y = signal + self.observation_sd * self._errors(generator)
        is_missing = self._missing_weeks(generator)
        responses = {name: self.q.get(name, 0.0) for name in self.channels}
        channel_columns = [list(CHANNELS).index(name) for name in self.channels]

        sequence = Sequence(
            name=self.name,
            states=None,
            observations=setting.place(torch.where(is_missing, torch.nan, y)).view(1, -1, 1),
            means=setting.place(signal).view(1, -1, 1),
            system=RetailTruth(
                {
                    "observation_sd": self.observation_sd,
                    "level_sd": self.level_sd,
                    "goodwill_sd": self.goodwill_sd,
                    "goodwill_kept": 1 - self.decay,
                }
                | responses,
                dict(zip(REGRESSORS, beta.tolist(), strict=True)) | responses,
                q[channel_columns],
                self.decay,
            ),
            state_names=["sales"],
            regressors=setting.place(X),
            regressor_names=list(REGRESSORS),
            inputs=setting.place(U[:, channel_columns]),
            input_names=self.channels,
            dates=tuple(monday.isoformat() for monday in world.week_start_dates),
            about={"unit": "million EUR a week"},
        )
        return split(sequence, weeks - self.n_train, self.origin, self.budget)

    def _errors(self, generator: torch.Generator) -> Tensor:
        """Errors of variance 1 [T]: normal, or Student's t."""
        z = torch.randn(self.n_steps, generator=generator, dtype=torch.float64)
        if self.nu is None:
            return z
        half = torch.full((self.n_steps,), self.nu / 2, dtype=torch.float64)
        precision = torch._standard_gamma(half, generator=generator) / half
        return z / precision.sqrt() * ((self.nu - 2) / self.nu) ** 0.5

    def _missing_weeks(self, generator: torch.Generator) -> Tensor:
        """Indicator of weeks without y [T]: a share of the observed ones, never the first."""
        is_missing = torch.zeros(self.n_steps, dtype=torch.bool)
        count = round(self.missing_share * self.n_train)
        is_missing[1 + torch.randperm(self.n_train - 1, generator=generator)[:count]] = True
        return is_missing
