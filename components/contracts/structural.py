"""Contributions of blocks to a structural time series, and inputs of its samplers.

Filters read them too.

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
    """A series with its covariates, from time 1 to the last that is seen or forecast.

    It has n times; float64.
    """

    y: Tensor  # [n]; NaN: missing, or still to come
    x: Tensor | None = None  # regressors [n, p]
    u: Tensor | None = None  # inputs, spendings of c channels [n, c]


@dataclass(frozen=True)
class Facts:
    """Facts that a block may use when it is built: the observed series, in its own units."""

    seen: Covariates
    # standard deviation of y, or the model's key: the unit of the priors
    scale: float
    centre: float  # where levels start: the first observation, or the model's key
    x_names: list[str]  # of the regressors; empty: there are none
    u_names: list[str]  # of the inputs
    where: str  # the key that holds the block, for error messages: model.blocks.2

    @property
    def like(self) -> Tensor:
        """Something of the dtype and on the device of the series."""
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
        """A standard deviation with a prior in units of y's, or of so much of it."""
        unit = unit * self.scale
        return Scale(name, guess * unit, df, math.inf if upper is None else upper * unit, states)

    def noises(
        self, names: Iterable[str], guess: float, df: float, upper: float | None
    ) -> tuple[Scale, ...]:
        """One standard deviation for each state in turn, with one prior."""
        return tuple(self.noise(name, guess, df, upper, (j,)) for j, name in enumerate(names))

    def check_period(self, period: float) -> None:
        """Raises ConfigMismatchError where a season is longer than what is seen."""
        if period > (times := len(self.like)):
            raise ConfigMismatchError(
                f"{self.where}.period={period:g}: longer than the {times} times that are seen; shorten it"
            )

    def column_indices(
        self, key: str, wanted: list[str] | None, names: list[str], what: str
    ) -> list[int]:
        """Places of the columns that a key of the block names; None: of all.

        Raises:
            ConfigMismatchError: there are none, or none of that name."""
        if not names:
            raise ConfigMismatchError(
                f"{self.where}: the data set has no {what}; leave the block out, or give it some"
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
    states: tuple[int, ...] = ()  # states with this noise; empty: the observations


@dataclass(frozen=True)
class Dynamics:
    """Unknown coefficients φ [k] of one row of G: G_row = base_row + Σ_j φ_j terms_j, φ ~ N(mean,
    sd²) where they may lie."""

    names: tuple[str, ...]
    row: int
    terms: Tensor  # [k, d]
    mean: float
    sd: float  # inf: uniform
    within: tuple[float, float] | None  # each, open; None: where the autoregression is stationary
    start: tuple[float, ...]  # where chains and searches begin

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
    """Columns with coefficients that are included or excluded.

    γ_i ~ Bernoulli(π_i), β_γ | γ, σ² ~ N(0, σ² (Ω_γγ)⁻¹) with the precision Ω.
    """

    names: tuple[str, ...]
    # [n, p], NaN where one is not known; for a stock the inflow at t
    columns: Callable[[Covariates], Tensor]
    inclusion: Tensor  # π [p]
    precision: Tensor  # Ω [p, p]
    fades: tuple[int, int] | None = (
        None  # they are stocks: index of its block's transition, and of its coefficient
    )
    lag: int | None = None  # the column that holds y_{t−1}, less the centre of the facts
    limits: Sequence[float] = ()  # κ of each stock; empty: none has a limit


@dataclass(frozen=True)
class Terms:
    """Terms that a block adds: d states (0: none) and p columns."""

    label: str  # prefix of its parameters' displayed names: level, season_52
    states: tuple[str, ...]  # names of the d states
    rows: Callable[[Covariates], Tensor]  # F [n, d]; known, of any length
    G: Tensor  # base [d, d]
    mean: Tensor  # m_1 [d]
    sd: Tensor  # s_1 [d]
    scales: tuple[Scale, ...] = ()
    transitions: tuple[Dynamics, ...] = ()
    regressors: Regressors | None = None
    # for parameters that count a column in multiples of its units
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
            rows=lambda beside: like.new_zeros(len(beside.y), 0),
            G=empty.view(0, 0),
            mean=empty,
            sd=empty,
            regressors=regressors,
            units=units or {},
        )


@dataclass(frozen=True)
class Errors:
    """ε_t = σ λ_t^{−½} N(0, 1), λ_t ~ Gamma(ν/2, ν/2); Gaussian: λ_t = 1."""

    student: bool
    nu: float | None  # None: drawn, ν − 2 ~ Gamma(shape, rate)
    shape: float
    rate: float

    @property
    def is_nu_sampled(self) -> bool:
        return self.student and self.nu is None


@dataclass(frozen=True)
class Structure:
    """All blocks side by side: d states, S scales, transitions, p columns.

    The first scale belongs to the observations.  Rows, terms and states are numbered over
    the whole structure.  θ [C, P] holds σ [S], φ [Q], β [p] (0: out) and, where it is
    drawn, ν.
    """

    G: Tensor  # base [d, d]
    mean: Tensor  # m_1 [d]
    sd: Tensor  # s_1 [d]
    scales: tuple[Scale, ...]
    transitions: tuple[Dynamics, ...]
    column_names: tuple[str, ...]
    inclusion: Tensor  # π [p]
    precision: Tensor  # Ω [p, p], of each block a block
    fades: Tensor  # [p] index of the φ that a column fades with, −1: it is no stock
    limits: Tensor  # κ of each column that is a stock with a limit, 0: without [p]
    lag: tuple[int, float] | None  # the column of y_{t−1}, and the number subtracted from it
    errors: Errors
    labels: tuple[str, ...]  # of the B blocks
    state_block: Tensor  # [d] block of each state
    column_block: Tensor  # [p] and of each column
    names: tuple[str, ...]  # of the P parameters, in the order of θ
    # for parameters that count a column in multiples of its units: the others use the column's own
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
    """Data that a structure reads from one series, times 1 … n; float64."""

    y: Tensor  # [n]; NaN: missing
    seen: Tensor  # [n] bool: y is there, and so are all its regressors
    F: Tensor  # [n, d]
    # [n, p]; for a stock the inflow at t; unknown numbers are 0, in times that are not seen
    X: Tensor
