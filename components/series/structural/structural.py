"""Structural time series: a sum of blocks."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.roles import Block, Model, NonEmptyList, ZeroToBelowOne
from components.contracts.sequences import Series
from components.contracts.streams import Rng
from components.contracts.structural import Covariates, Design, Errors, Facts, Structure
from components.errors import ConfigMismatchError
from components.maths.time_varying import TimeVaryingSystem
from components.registry import register
from components.series.forecasting import Forecasting
from components.series.sequence import UNIVARIATE, Sequence
from components.series.structural.stock_columns import stocks
from components.series.structural.structure import side_by_side

Law = Literal["gaussian", "student_t"]


class SumOfBlocks:
    """``StructuralSeries``: the blocks and the observation noise of one series."""

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
        """The rows and columns of all T times and of ``ahead`` further times.

        Raises:
            ConfigMismatchError: a row needs values that are unknown at the future times."""
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
                    f"dataset: {name} is not known at all forecast times; add its values, or remove its block"
                )

    @cached_property
    def _spread(self) -> Tensor:
        """Indicator [S, d] of the standard deviation of each state's noise."""
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
        """x_t for each parameter set, with stocks accumulated with their φ [C, n, p]."""
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
    in float64. Priors of standard deviations are in units of ``scale`` (null: sd(y) of the observed
    values); levels start around ``centre`` (null: the first observation). 1/σ² ~ Gamma(df/2, df
    guess²/2) with guess √(1 − R²) sd(y) if there are columns, else sd(y), which is flat in log σ
    above about guess √df; ``df`` also applies to all blocks: 0.01 in bsts, 5 for a prior suited to
    simulation. ν − 2 ~ Gamma(a, b) if ν is unknown. Missing observations are skipped. The series is
    single and univariate.

    Raises ConfigMismatchError for several or multivariate series, if y is never observed or
    constant, or if a block lacks its columns.

    Source: Gallego (2021), section 1.2.2, eqs. (1.2) to (1.5); Scott and Varian (2014).
    """

    requires = UNIVARIATE
    inherited_keys = {"df"}

    blocks: NonEmptyList[Block]
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
                f"dataset={problem.name}: y is missing or constant at all observed times"
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
                f"dataset={problem.name}: only {int(design.seen.sum())} times have y and all "
                "regressors; fill gaps in the regressors, or remove some from model.blocks"
            )
        return model
