"""Contributions of blocks to a structural time series, and inputs of its samplers and filters.


    y_t = F_t α_t + x_tᵀβ + ε_t,   α_{t+1} = G(φ) α_t + N(0, diag W(σ)),
    α_1 ~ N(m_1, diag s_1²),   ε_t ~ N(0, σ²/λ_t)

A column of x may be a stock, s_{t+1} = (φ_j − κ u_t) s_t + u_t with s_1 = 0: goodwill that fades
at the same rate as a state, and has a limit 1/κ where κ > 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from components.errors import ConfigMismatchError


class Covariates(NamedTuple):
    """A series with its covariates, from time 1 to the last observed or forecast time.

    Arrays have n times and dtype float64.
    """

    y: Tensor  # [n]; NaN: missing or in the future
    x: Tensor | None = None  # regressors [n, p]
    u: Tensor | None = None  # inputs, spending in c channels [n, c]


@dataclass(frozen=True)
class Facts:
    """Facts for building a block: the observed series, in its own units."""

    seen: Covariates
    # unit of the priors: the standard deviation of y, or the model's key
    scale: float
    centre: float  # initial level: the first observation, or the model's key
    x_names: list[str]  # of the regressors; empty if there are none
    u_names: list[str]  # of the inputs
    where: str  # key of the block in error messages, for example model.blocks.2

    @property
    def like(self) -> Tensor:
        """A tensor with the dtype and device of the series."""
        return self.seen.y

    def noise(
        self,
        name: str,
        guess: float,
        df: float,
        upper: float | None,
        states: tuple[int, ...],
        unit: float = 1.0,
    ) -> Scale:
        """A standard deviation with a prior in multiples of y's scale, or of ``unit`` times it."""
        unit = unit * self.scale
        return Scale(name, guess * unit, df, math.inf if upper is None else upper * unit, states)

    def noises(
        self, names: Iterable[str], guess: float, df: float, upper: float | None
    ) -> tuple[Scale, ...]:
        """One standard deviation for each state, all with the same prior."""
        return tuple(self.noise(name, guess, df, upper, (j,)) for j, name in enumerate(names))

    def check_period(self, period: float) -> None:
        """Raise ConfigMismatchError if a season is longer than the series."""
        if period > (times := len(self.like)):
            raise ConfigMismatchError(
                f"{self.where}.period={period:g}: longer than the {times} observed time points; use a "
                f"shorter period"
            )

    def column_indices(
        self, key: str, wanted: list[str] | None, names: list[str], what: str
    ) -> list[int]:
        """Indices of the columns named by a key of the block; None for all columns.

        Raises:
            ConfigMismatchError: there are no columns, or none of that name."""
        if not names:
            raise ConfigMismatchError(
                f"{self.where}: the data set has no {what}; remove the block, or use a data set "
                f"that has them"
            )
        for name in wanted or []:
            if name not in names:
                raise ConfigMismatchError(
                    f"{self.where}.{key}={name}: no such {what}; there are {', '.join(names)}"
                )
        return [names.index(name) for name in wanted or names]


@dataclass(frozen=True)
class Scale:
    """A standard deviation σ: 1/σ² ~ Gamma(df/2, rate df guess²/2), given σ ≤ upper; all in the
    units of y."""

    name: str
    guess: float
    df: float
    upper: float  # may be inf
    states: tuple[int, ...] = ()  # states with this noise; empty means the observations


@dataclass(frozen=True)
class Dynamics:
    """Unknown coefficients φ [k] of one row of G: G_row = base_row + Σ_j φ_j terms_j, φ ~ N(mean,
    sd²) truncated to their bounds."""

    names: tuple[str, ...]
    row: int
    terms: Tensor  # [k, d]
    mean: float
    sd: float  # inf: uniform
    # open interval of each; None means the stationary region of the autoregression
    within: tuple[float, float] | None
    start: tuple[float, ...]  # initial value for chains and searches

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def precision(self) -> float:
        """Prior precision of each coefficient."""
        return 0.0 if self.sd == math.inf else 1 / self.sd**2

    @property
    def interval(self) -> tuple[float, float]:
        """Admissible interval of one coefficient by itself."""
        return (-1.0, 1.0) if self.within is None else self.within


@dataclass(frozen=True)
class Regressors:
    """Columns with coefficients subject to selection.

    γ_i ~ Bernoulli(π_i), β_γ | γ, σ² ~ N(0, σ² (Ω_γγ)⁻¹) with the precision Ω.
    """

    names: tuple[str, ...]
    # [n, p], NaN where unknown; for a stock the inflow at t
    columns: Callable[[Covariates], Tensor]
    inclusion: Tensor  # π [p]
    precision: Tensor  # Ω [p, p]
    # of stocks: index of the transition in its block, and of its coefficient
    fades: tuple[int, int] | None = None
    lag: int | None = None  # column of y_{t−1} minus the centre of the facts
    limits: Sequence[float] = ()  # κ of each stock; empty means no limits


@dataclass(frozen=True)
class Terms:
    """Terms that a block adds: d ≥ 0 states and p columns."""

    label: str  # prefix of its parameters' displayed names, for example season_52
    states: tuple[str, ...]  # names of the d states
    rows: Callable[[Covariates], Tensor]  # F [n, d]; known for any n
    G: Tensor  # base [d, d]
    mean: Tensor  # m_1 [d]
    sd: Tensor  # s_1 [d]
    scales: tuple[Scale, ...] = ()
    transitions: tuple[Dynamics, ...] = ()
    regressors: Regressors | None = None
    # for parameters in multiples of a column's units
    units: dict[str, float] = field(default_factory=dict)

    @classmethod
    def regression_terms(
        cls, label: str, regressors: Regressors, like: Tensor, units: dict[str, float] | None = None
    ) -> Terms:
        """Terms with columns only."""
        empty = like.new_zeros(0)
        return cls(
            label=label,
            states=(),
            rows=lambda covariates: like.new_zeros(len(covariates.y), 0),
            G=empty.view(0, 0),
            mean=empty,
            sd=empty,
            regressors=regressors,
            units=units or {},
        )


@dataclass(frozen=True)
class Errors:
    """ε_t = σ λ_t^{−½} N(0, 1), λ_t ~ Gamma(ν/2, ν/2); λ_t = 1 for Gaussian errors."""

    student: bool
    nu: float | None  # None if drawn, ν − 2 ~ Gamma(shape, rate)
    shape: float
    rate: float

    @property
    def is_nu_sampled(self) -> bool:
        return self.student and self.nu is None


@dataclass(frozen=True)
class Structure:
    """All blocks combined: d states, S scales, transitions, p columns.

    The first scale is the scale of the observation noise.  Rows, terms and states are numbered over
    the whole structure.  θ [C, P] holds σ [S], φ [Q], β [p] (0 for an excluded column) and, where
    it is drawn, ν.
    """

    G: Tensor  # base [d, d]
    mean: Tensor  # m_1 [d]
    sd: Tensor  # s_1 [d]
    scales: tuple[Scale, ...]
    transitions: tuple[Dynamics, ...]
    column_names: tuple[str, ...]
    inclusion: Tensor  # π [p]
    precision: Tensor  # Ω [p, p], block-diagonal by block
    fades: Tensor  # [p] index of the decay coefficient φ of a stock, −1: not a stock
    limits: Tensor  # κ of each column [p]; 0: not a stock, or a stock without limit
    lag: tuple[int, float] | None  # column of y_{t−1}, and the number subtracted from it
    errors: Errors
    labels: tuple[str, ...]  # labels of the B blocks
    state_block: Tensor  # [d] block of each state
    column_block: Tensor  # [p] block of each column
    names: tuple[str, ...]  # of the P parameters, in the order of θ
    # for parameters in multiples of a column's units; other parameters use the units themselves
    units: dict[str, float]

    def transition(self, phi: Tensor) -> Tensor:
        """G [C, d, d] with the coefficients φ [C, Q]."""
        G = self.G.expand(len(phi), -1, -1).clone()
        q = 0
        for moves in self.transitions:
            G[:, moves.row] += phi[:, q : q + moves.count] @ moves.terms
            q += moves.count
        return G

    @property
    def beta(self) -> list[int]:
        """Positions in θ of the columns' coefficients."""
        first = len(self.scales) + sum(moves.count for moves in self.transitions)
        return list(range(first, first + len(self.column_names)))


class Design(NamedTuple):
    """Inputs of a structure from one series, times 1 … n; float64."""

    y: Tensor  # [n]; NaN: missing
    seen: Tensor  # [n] bool: y and all regressors are observed
    F: Tensor  # [n, d]
    # [n, p]; for a stock the inflow at t; unknown numbers are 0 and their times not observed
    X: Tensor
