"""Structural time series: a sum of blocks."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.requirements import Requirements
from components.contracts.roles import Block, Model, ZeroToBelowOne
from components.contracts.sequences import Series
from components.contracts.streams import Rng
from components.contracts.structural import (
    Covariates,
    Design,
    Dynamics,
    Errors,
    Facts,
    Scale,
    Structure,
    Terms,
)
from components.errors import ConfigMismatchError
from components.maths.time_varying import TimeVaryingSystem
from components.registry import register
from components.series.forecasting import Forecasting
from components.series.sequence import Sequence
from components.series.structural.stock_columns import stocks


def place_scales(blocks: list[Terms], noise: Scale) -> tuple[Scale, ...]:
    """The noise's scale, then each block's with its states counted through."""
    scales = [noise]
    d = 0
    for terms in blocks:
        for scale in terms.scales:
            scales.append(replace(scale, states=tuple(d + j for j in scale.states)))
        d += len(terms.states)
    return tuple(scales)


def place_dynamics(blocks: list[Terms], like: Tensor) -> tuple[Dynamics, ...]:
    """Each block's own dynamics, with rows and states counted through."""
    width = sum(len(terms.states) for terms in blocks)
    dynamics = []
    d = 0
    for terms in blocks:
        n_states = len(terms.states)
        for moves in terms.transitions:
            placed = like.new_zeros(moves.count, width)
            placed[:, d : d + n_states] = moves.terms
            dynamics.append(replace(moves, row=d + moves.row, terms=placed))
        d += n_states
    return tuple(dynamics)


def place_columns(
    blocks: list[Terms], facts: Facts
) -> tuple[list[int], list[int], tuple[int, float] | None]:
    """Columns counted through.

    Returns:
        The coefficient of its dynamics that each column fades with (−1: it does not fade), the
        block of each column, and the lagged column with the series' centre."""
    fades: list[int] = []
    column_block: list[int] = []
    lag: tuple[int, float] | None = None
    q = 0
    for b, terms in enumerate(blocks):
        firsts = list(accumulate((moves.count for moves in terms.transitions), initial=q))
        q = firsts[-1]
        columns = terms.regressors
        if columns is None:
            continue
        n = len(columns.names)
        if columns.lag is not None:
            lag = (len(fades) + columns.lag, facts.centre)
        fades += [-1 if columns.fades is None else firsts[columns.fades[0]] + columns.fades[1]] * n
        column_block += [b] * n
    return fades, column_block, lag


def check_unique(names: list[str], where: str) -> tuple[str, ...]:
    """The names.

    Raises:
        ConfigMismatchError: two blocks have a parameter of one name."""
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ConfigMismatchError(
            f"{where}: two blocks have a parameter {twice[0]}; leave one of them out"
        )
    return tuple(names)


def name_parameters(
    scales: tuple[Scale, ...],
    dynamics: tuple[Dynamics, ...],
    column_names: tuple[str, ...],
    errors: Errors,
) -> list[str]:
    """Names of σ, φ, β and ν, in the order of θ."""
    names = [scale.name for scale in scales]
    for moves in dynamics:
        names += moves.names
    names += column_names
    return names + (["nu"] if errors.is_nu_sampled else [])


def block_diagonal(parts: list[Tensor], like: Tensor) -> Tensor:
    return torch.block_diag(*parts) if parts else like.new_zeros(0, 0)


def side_by_side(blocks: list[Terms], noise: Scale, errors: Errors, facts: Facts) -> Structure:
    """The structure of the sum: G block by block, states and coefficients counted through.

    Raises:
        ConfigMismatchError: two blocks have a parameter of one name."""
    like = facts.like
    scales = place_scales(blocks, noise)
    dynamics = place_dynamics(blocks, like)
    fades, column_block, lag = place_columns(blocks, facts)
    state_block = [b for b, terms in enumerate(blocks) for _ in terms.states]
    regressors = [terms.regressors for terms in blocks if terms.regressors is not None]
    column_names = tuple(name for columns in regressors for name in columns.names)
    names = name_parameters(scales, dynamics, column_names, errors)
    inclusion = [columns.inclusion for columns in regressors] or [like.new_zeros(0)]
    return Structure(
        G=block_diagonal([terms.G for terms in blocks if terms.states], like),
        mean=torch.cat([terms.mean for terms in blocks]),
        sd=torch.cat([terms.sd for terms in blocks]),
        scales=scales,
        transitions=dynamics,
        column_names=column_names,
        inclusion=torch.cat(inclusion),
        precision=block_diagonal([columns.precision for columns in regressors], like),
        fades=torch.tensor(fades, dtype=torch.long, device=like.device),
        limits=like.new_tensor(
            [k for columns in regressors for k in columns.limits or [0.0] * len(columns.names)]
        ),
        lag=lag,
        errors=errors,
        labels=tuple(terms.label for terms in blocks),
        state_block=torch.tensor(state_block, dtype=torch.long, device=like.device),
        column_block=torch.tensor(column_block, dtype=torch.long, device=like.device),
        names=check_unique(names, facts.where),
        units={name: unit for terms in blocks for name, unit in terms.units.items()},
    )


Law = Literal["gaussian", "student_t"]


class SumOfBlocks:
    """``StructuralSeries``: blocks, and the observations' noise, of one series."""

    def __init__(
        self,
        blocks: list[Block],
        facts: Facts,
        observation: tuple[float, float, float | None],
        errors: Errors,
    ):
        self.terms = [
            block.terms(replace(facts, where=f"{facts.where}.{b}"))
            for b, block in enumerate(blocks)
        ]
        columns = any(terms.regressors is not None for terms in self.terms)
        r2, df, upper = observation
        noise = facts.noise("observation_sd", math.sqrt(1 - r2) if columns else 1.0, df, upper, ())
        self.structure: Structure = side_by_side(self.terms, noise, errors, facts)

    def design(self, series: Series, ahead: int = 0) -> Design:
        """The rows and columns of all T times, and of so many that follow.

        Raises:
            ConfigMismatchError: a row needs what is not known of the times ahead."""
        covariates = extend_covariates(series, ahead)
        F = torch.cat([terms.rows(covariates) for terms in self.terms], 1)
        parts = [
            terms.regressors.columns(covariates)
            for terms in self.terms
            if terms.regressors is not None
        ]
        X = torch.cat(parts, 1) if parts else F[:, :0]
        is_known = ~torch.cat([F, X], 1).isnan()
        self._check_future_covariates(is_known, len(covariates.y) - ahead)
        is_observed = is_known.all(1) & ~covariates.y.isnan()
        return Design(covariates.y, is_observed, F.nan_to_num(0.0), X.nan_to_num(0.0))

    def _check_future_covariates(self, known: Tensor, times: int) -> None:
        lag = self.structure.lag
        names = [name for terms in self.terms for name in terms.states] + list(
            self.structure.column_names
        )
        for j, name in enumerate(names):
            is_lag = lag is not None and j == self.structure.G.shape[0] + lag[0]
            if not is_lag and not bool(known[times:, j].all()):
                raise ConfigMismatchError(
                    f"dataset: {name} is not known at all of the times to be forecast; give it there, or leave its block out"
                )

    @cached_property
    def _spread(self) -> Tensor:
        """[S, d] 1 where a state's noise has a standard deviation."""
        out = self.structure.G.new_zeros(len(self.structure.scales), len(self.structure.G))
        for j, scale in enumerate(self.structure.scales):
            out[j, list(scale.states)] = 1.0
        return out

    def split(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """σ [C, S], φ [C, Q] and β [C, p]."""
        S = len(self.structure.scales)
        p = len(self.structure.column_names)
        Q = sum(moves.count for moves in self.structure.transitions)
        sigma, phi, beta, _ = theta.tensor_split([S, S + Q, S + Q + p], 1)
        return sigma, phi, beta

    def columns(self, theta: Tensor, design: Design) -> Tensor:
        """x_t of each set, stocks with the φ of their own [C, n, p]."""
        _, phi, _ = self.split(theta)
        return stocks(design.X, self.structure.fades, self.structure.limits, phi)

    def system(self, theta: Tensor, design: Design) -> TimeVaryingSystem:
        sigma, phi, beta = self.split(theta)
        G = self.structure.transition(phi)
        W = sigma.square() @ self._spread
        offset = (self.columns(theta, design) @ beta.unsqueeze(2)).squeeze(2)
        noise = sigma[:, :1].square().expand(-1, len(design.y))
        return TimeVaryingSystem(
            design.F, G, W, self.structure.mean, self.structure.sd, offset, noise
        )


def extend_covariates(series: Series, ahead: int) -> Covariates:
    """Data of a series followed by ``ahead`` times with unknown y."""
    y = series.y[0, :, 0].double()
    y = torch.cat([y, y.new_full((ahead,), torch.nan)])
    later = series.ahead

    def append_time(value: Tensor | None, after: Tensor | None) -> Tensor | None:
        if value is None:
            return None
        future = value[:0] if after is None else after[:ahead]
        unknown = value.new_full((ahead - len(future), value.shape[1]), torch.nan)
        return torch.cat([value, future, unknown]).double()

    return Covariates(
        y, append_time(series.x, later and later.x), append_time(series.u, later and later.u)
    )


@register("model", "structural")
class Structural(Model[Sequence, SumOfBlocks]):
    """Structural time series: the sum of ``blocks``, observed with noise.

        y_t = Σ_b F_bt α_bt + x_tᵀ β + ε_t,   α_{b,t+1} = G_b α_bt + N(0, W_b),
        ε_t ~ N(0, σ²) or σ t_ν

    Blocks are given by name, or as ``{name: seasonal, period: 52}``; parameters θ [C, P],
    in float64. Priors of standard deviations are in units of ``scale`` (null: sd(y) of the
    observed values), levels start about ``centre`` (null: the first observation).
    1/σ² ~ Gamma(df/2, df guess²/2) with guess √(1 − R²) sd(y) where there are columns, else
    sd(y), that is flat in log σ from about guess √df up; ``df`` applies to all blocks too:
    0.01 in bsts, 5 for a prior that can be drawn from. ν − 2 ~ Gamma(a, b) where it is drawn. Missing observations are skipped.
    There is one series of one number at a time.

    Raises ConfigMismatchError when there are several series or numbers, y is not observed or is
    constant, or a block lacks its columns.

    Source: Gallego (2021), section 1.2.2, eqs. (1.2) to (1.5); Scott and Varian (2014).
    """

    requires = Requirements(
        kinds={"sequence"},
        refused_traits={"several_numbers": "takes one number at a time"},
    )
    offers = {"structural_series"}
    inherited_keys = {"df"}

    blocks: Annotated[list[Block], Field(min_length=1)]
    scale: PositiveFloat | None
    centre: float | None
    df: PositiveFloat
    upper: PositiveFloat | None
    r2: ZeroToBelowOne
    errors: Law
    nu: Annotated[float, Field(gt=2)] | None
    nu_shape: PositiveFloat
    nu_rate: PositiveFloat

    def build(self, problem: Sequence, rng: Rng) -> SumOfBlocks:
        problem.check_single(f"model={self.name}")
        covariates = extend_covariates(problem.series, 0)
        y = covariates.y[~covariates.y.isnan()]
        if len(y) < 2 or bool((y == y[0]).all()):
            raise ConfigMismatchError(
                f"dataset={problem.name}: y is missing or constant at all times seen; there is nothing to learn"
            )
        facts = Facts(
            seen=covariates,
            scale=float(y.std()) if self.scale is None else self.scale,
            centre=float(y[0]) if self.centre is None else self.centre,
            x_names=problem.regressor_names,
            u_names=problem.input_names,
            where="model.blocks",
        )
        errors = Errors(self.errors == "student_t", self.nu, self.nu_shape, self.nu_rate)
        model = SumOfBlocks(list(self.blocks), facts, (self.r2, self.df, self.upper), errors)
        design = model.design(
            problem.series, problem.future.shape[1] if isinstance(problem, Forecasting) else 0
        )
        if int(design.seen.sum()) < 2:
            raise ConfigMismatchError(
                f"dataset={problem.name}: {int(design.seen.sum())} times have y and all that it is regressed on; fill gaps of "
                "the regressors, or leave some out of model.blocks"
            )
        return model
