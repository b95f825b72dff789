"""Data exchanged by a sequence problem, its filters and smoothers, and its figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from torch import Tensor


class Observation(NamedTuple):
    """The batch of a filter: the observations at time t."""

    t: int  # 1 … T
    y: Tensor  # [R, dy]; NaN where missing
    x: Tensor | None = None  # regressors of time t [p], the same for all replicates
    # [R] bool: True where y is missing; None if observed in all replicates
    missing: Tensor | None = None


class FutureCovariates(NamedTuple):
    """Known facts about the H times after a series, without their observations."""

    x: Tensor | None = None  # regressors [H, p]
    u: Tensor | None = None  # inputs [H, c]


class Series(NamedTuple):
    """The batch of a smoother or of a sampler over a whole series."""

    y: Tensor  # [R, T, dy]; NaN where missing
    x: Tensor | None = None  # regressors [T, p]
    missing: Tensor | None = None  # [R, T] bool; None if nothing is missing
    u: Tensor | None = None  # inputs, as spendings in c channels [T, c]
    ahead: FutureCovariates | None = None  # known inputs at later times
    # of the T times and later ones, ISO 8601; empty if times are numbered
    dates: tuple[str, ...] = ()

    @property
    def scale(self) -> float:
        """Weight of the series, always 1."""
        return 1.0

    @property
    def n_rows(self) -> int:
        return 1

    def part(self, rows: Tensor | slice, scale: float) -> Series:
        """The series itself, which is the only row."""
        return self


class Clean(NamedTuple):
    """Input of a contamination: clean observations, with the known facts that generated them."""

    y: Tensor  # [R, T, dy]; NaN where missing
    mean: Tensor | None = None  # E[y_t | x_t] [R or 1, T, dy]: y without the noise
    states: Tensor | None = None  # [R or 1, T, dx]


@dataclass(frozen=True)
class TrueParameters:
    """Parameters that generated a series, by the names of the model: ``KnownParameters``."""

    parameters: Mapping[str, float]


@dataclass(frozen=True)
class LinearGaussianSystem:
    """x_0 ~ N(m_0, P_0), x_t = A x_{t−1} + N(0, Q), y_t = H x_t + N(0, Σ).

    Source: Boustati (2021), eqs. (6.16), (6.17)."""

    A: Tensor  # [dx, dx]
    Q: Tensor  # [dx, dx]
    H: Tensor  # [dy, dx]
    Sigma: Tensor  # [dy, dy]
    m0: Tensor  # [dx]
    P0: Tensor  # [dx, dx]

    @property
    def parameters(self) -> dict[str, float]:
        """Scales of the noises: (tr Σ/dy)^½ and (tr Q/dx)^½."""
        scales = {"observation_sd": self.Sigma, "state_sd": self.Q}
        return {name: math.sqrt(float(matrix.diagonal().mean())) for name, matrix in scales.items()}


class Trajectories(Protocol):
    """Attributes of a sequence problem that figures need."""

    @property
    def states(self) -> Tensor | None: ...  # the truth [R or 1, T, dx], where it is known

    @property
    # the truth of the signal E[y_t | x_t] [R or 1, T, dy], where it is known
    def means(self) -> Tensor | None: ...

    @property
    def observations(self) -> Tensor: ...  # [R, T, dy]

    @property
    def state_names(self) -> list[str]: ...

    @property
    def state_labels(self) -> list[str]: ...  # with units if known

    @property
    # of the T times and those to be forecast, ISO 8601; empty if times are numbered
    def dates(self) -> tuple[str, ...]: ...

    @property
    # [T] bool: outliers by a rule of the data set
    def suspect(self) -> Tensor | None: ...

    @property
    def is_corrupted(self) -> Tensor: ...  # [R, T] bool: observations changed by an attacker

    # t of the largest outliers, in order
    def outliers(self, replicate: int, times: int, most: int) -> list[int]: ...
