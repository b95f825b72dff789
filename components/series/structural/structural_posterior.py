"""Posterior of a structural series: draws of parameters and block contributions.

It also provides their forecasts and effects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import torch
from torch import Tensor

from components.contracts.capabilities import StructuralSeries
from components.contracts.posteriors import (
    Affine,
    AffineInInputs,
    ForecastMoments,
    Forecasts,
    HoldsDraws,
    Part,
    Selects,
    StructuralPosterior,
    WritesFiles,
)
from components.contracts.predictive import GaussianMixture
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference
from components.contracts.roles.component import S
from components.contracts.sequences import FutureCovariates, Series
from components.contracts.structural import Design
from components.errors import ConfigMismatchError
from components.maths.particles.order_statistics import quantiles
from components.maths.spacing import evenly_spaced
from components.maths.time_varying import FilteredSystem, TimeVaryingSystem, filter_system
from components.posteriors.draws import FORECASTS, Draws
from components.series.sequence import Sequence
from components.series.structural.ahead import forecast_moments


def parts_of(of: StructuralSeries, theta: Tensor, states: Tensor, design: Design) -> Tensor:
    """Contribution of each block to y.

    F_b α_b + x_b β_b for θ [C, P] and states [C, n, d] -> [C, n, B].
    """
    structure = of.structure
    out = states.new_zeros(*states.shape[:2], len(structure.labels))
    out.index_add_(2, structure.state_block, states * design.F)
    return out.index_add_(
        2, structure.column_block, of.columns(theta, design) * theta[:, None, structure.beta]
    )


def add_coefficients(
    system: TimeVaryingSystem, X: Tensor, beta: Tensor, sd: Tensor
) -> TimeVaryingSystem:
    """One system with its coefficients as states: β ~ N(``beta``, diag sd²) [p] for columns [n, p].

    Source: Durbin and Koopman (2012), section 6.2.2."""
    p = len(beta)
    return system._replace(
        F=torch.cat([system.F, X], 1),
        G=torch.block_diag(system.G[0], torch.eye(p).to(X)).unsqueeze(0),
        W=torch.nn.functional.pad(system.W, (0, p)),
        mean=torch.cat([system.mean, beta]),
        sd=torch.cat([system.sd, sd]),
        offset=torch.zeros_like(system.offset),
    )


@dataclass(frozen=True, kw_only=True)
class StructuralDraws(Draws):
    """Draws of θ [C, N, P] and of the B blocks' parts of y; forecasts integrate out the states.

    Student's t errors are Gaussian given their precisions λ_t: at observed times λ is drawn with
    θ; at future times it is drawn from the prior.  A future observation that becomes known during
    forecasting has the expected weight E[λ_t] = (ν + 1)/(ν + v²/S)."""

    of: StructuralSeries
    series: Series
    contributions: Tensor  # [C, N, T, B], or other draws of them [C', N', T, B]
    precisions: Tensor | None = None  # λ [C, N, T]; None if errors are Gaussian
    # sd of a wide prior of β around a point estimate, in joint forecasts [p]; None for β as drawn
    coefficient_sd: Tensor | None = None

    def _forecast_parameters(self) -> tuple[Tensor, Tensor | None]:
        """θ [S, P] of at most 500 evenly spaced draws, and their λ [S, T]; the current positions of
        the chains before the first stored draw."""
        if not self.n_draws:
            return (self.start if self.current is None else self.current), None
        theta = evenly_spaced(self.flat, FORECASTS)
        if self.precisions is None:
            return theta, None
        return theta, evenly_spaced(self.precisions.flatten(0, 1), FORECASTS)

    def joint_forecast(
        self, series: Series, horizon: int, generator: torch.Generator
    ) -> ForecastMoments:
        """Joint moments of y_{T+1} … y_{T+H} given each of at most 500 draws, or given a point
        estimate with its coefficients integrated out."""
        return self._joint_moments(series, horizon, generator, self.coefficient_sd)

    def _joint_moments(
        self,
        series: Series,
        horizon: int,
        generator: torch.Generator,
        coefficient_sd: Tensor | None = None,
    ) -> ForecastMoments:
        theta, lam = self._forecast_parameters()
        design = self.of.design(series, horizon)
        system = self.of.system(theta, design)
        system = system._replace(
            noise=system.noise / self._weights(theta, lam, design.y, horizon, generator)
        )
        if coefficient_sd is not None:
            X = self.of.columns(theta, design)[0]
            system = add_coefficients(system, X, theta[0, self.of.structure.beta], coefficient_sd)
        lag = self.of.structure.lag
        kappa = None
        centre = 0.0
        late = 0
        if lag is not None:
            kappa = theta[:, self.of.structure.beta[lag[0]]]
            centre = lag[1]
            # If the last values are missing, later times depend on them, so they are also forecast.
            late = int(series.y[0, :, 0].isnan().flip(0).cumprod(0).sum())
        with torch.no_grad():
            moments = forecast_moments(system, design.y, design.seen, horizon + late, kappa, centre)
        return ForecastMoments(moments.mean[:, late:], moments.covariance[:, late:, late:])

    def _weights(
        self, theta: Tensor, lam: Tensor | None, y: Tensor, horizon: int, generator: torch.Generator
    ) -> Tensor:
        """λ of all times [S, n]: the drawn ones, then draws from the prior."""
        out = theta.new_ones(len(theta), len(y))
        if not self.of.structure.errors.student:
            return out
        times = len(y) - horizon
        if lam is not None:
            n_known = min(times, lam.shape[1])
            out[:, :n_known] = lam[:, :n_known]
        half = (self._nu(theta) / 2).unsqueeze(1).expand(-1, horizon)
        out[:, times:] = torch._standard_gamma(half.contiguous(), generator=generator) / half
        return out

    def _nu(self, theta: Tensor) -> Tensor:
        fixed = self.of.structure.errors.nu
        return theta[:, -1] if fixed is None else theta.new_full((len(theta),), fixed)

    def forecast(self, series: Series, horizon: int, generator: torch.Generator) -> GaussianMixture:
        """Forecast of y_{T+1} … y_{T+H}, a mixture over at most 500 draws [S, H, 1]."""
        moments = self.joint_forecast(series, horizon, generator)
        return GaussianMixture(
            moments.mean.unsqueeze(2), torch.linalg.diagonal(moments.covariance).unsqueeze(2)
        )

    def one_ahead(self, series: Series, n: int, generator: torch.Generator) -> GaussianMixture:
        """One-step forecast of each of the last n times of a series, given all earlier ones [S, n,
        1].

        The parameters remain as learned.
        """
        theta, lam = self._forecast_parameters()
        design = self.of.design(series)
        system = self.of.system(theta, design)
        weights = self._weights(theta, lam, design.y, 0, generator)
        student = self.of.structure.errors.student
        n_drawn = 0 if lam is None else lam.shape[1]

        def weigh(t: int, error: Tensor, S: Tensor) -> Tensor:
            nu = self._nu(theta)
            return weights[:, t] if t < n_drawn else (nu + 1) / (nu + error.square() / S)

        with torch.no_grad():
            moments = filter_system(
                system, design.y, design.seen.tolist(), weigh=weigh if student else None
            )
        mean = moments.mean[:, -n:]
        v = moments.variance[:, -n:]
        if student:
            v = v + system.noise[:, -n:] * (
                1 / self._weights(theta, None, design.y[-n:], n, generator) - 1
            )
        return GaussianMixture(mean.unsqueeze(2), v.unsqueeze(2))

    def log_likelihood(self, series: Series) -> Tensor:
        """log p(y_1:T | θ) for at most 500 draws [S]; for Student's t also given the precisions."""
        return self._filter(series, *self._forecast_parameters()).log_density

    def beforehand(self, series: Series) -> tuple[Tensor, Tensor]:
        """E[y_t | y_<t, θ] and Var[y_t | y_<t, θ] for every draw and time [S, T]; for Student's t
        also given the precisions."""
        lam = None if self.precisions is None else self.precisions.flatten(0, 1)
        moments = self._filter(series, self.flat, lam)
        return moments.mean, moments.variance

    @torch.no_grad()
    def _filter(self, series: Series, theta: Tensor, lam: Tensor | None) -> FilteredSystem:
        """The Kalman filter given θ [S, P] and λ [S, T]."""
        design = self.of.design(series)
        system = self.of.system(theta, design)
        if lam is not None:
            system = system._replace(noise=system.noise / lam)
        return filter_system(system, design.y, design.seen.tolist())

    def affine(self, series: Series, horizon: int, generator: torch.Generator) -> Affine:
        """Effect of inputs u_T … u_{T+H−1} on y_{T+1} … y_{T+H}, for at most 500 draws.

        The result is the mean + D u, and the covariance.

        Raises:
            ConfigMismatchError: the effect of inputs is not proportional to them.
        """
        assert series.u is not None
        self._check_proportional(series)
        c = series.u.shape[1]
        zeros = series.u.new_zeros(horizon, c)
        x = None if series.ahead is None else series.ahead.x

        def of(first: Tensor) -> ForecastMoments:
            """Forecast with the given u_T and zero spends after it."""
            u = torch.cat([series.u[:-1], first.unsqueeze(0)]) if series.u is not None else None
            state = torch.Generator(generator.device)
            state.set_state(generator.get_state())
            return self._joint_moments(
                series._replace(u=u, ahead=FutureCovariates(x, zeros)), horizon, state
            )

        base = of(zeros[0])
        D = base.mean.new_zeros(len(base.mean), horizon, horizon, c)
        for i in range(c):
            unit = zeros[0].clone()
            unit[i] = 1.0
            # effect of one unit at T on y_{T+1} … y_{T+H}  # [S, H]
            response = of(unit).mean - base.mean
            for j in range(horizon):
                D[:, j:, j, i] = response[:, : horizon - j]
        return Affine(base.mean, base.covariance, D)

    def _check_proportional(self, series: Series) -> None:
        """Raise ConfigMismatchError if doubling the inputs at T does not double their effect."""
        assert series.u is not None
        last = torch.zeros_like(series.u)
        last[-1] = 1.0
        past = series.u * (1 - last)
        after, without, once, none = (
            self.of.design(series._replace(u=u), 1).X
            for u in (past + 2 * last, past, last, 0 * last)
        )
        limited = bool(self.of.structure.limits.any())
        if limited or not torch.allclose(after - without, 2 * (once - none), rtol=1e-6):
            raise ConfigMismatchError(
                "dataset.budget: a plan needs effects proportional to the spends; remove "
                "saturation, vidale_wolfe, wear_in, wear_out and interactions from "
                "model.blocks, or set dataset.budget.total=null"
            )

    @property
    def labels(self) -> list[str]:
        return list(self.of.structure.labels)

    @cached_property
    def components(self) -> list[Part]:
        """Mean and central 95 % band of each block's part of y at each time, and E[x_t β] of its
        columns over at most 500 draws."""
        pooled = self.contributions.flatten(0, 1)  # [S, T, B]
        if not len(pooled):
            return []
        mean = pooled.mean(0)
        lower, upper = quantiles(pooled.flatten(1).unsqueeze(0), (0.025, 0.975))
        low = lower.view_as(mean)
        high = upper.view_as(mean)
        structure = self.of.structure
        theta, _ = self._forecast_parameters()
        effects = (
            self.of.columns(theta, self.of.design(self.series)) * theta[:, None, structure.beta]
        )
        columns: list[dict[str, Tensor]] = [{} for _ in self.labels]
        for b, name, effect in zip(
            structure.column_block, structure.column_names, effects.mean(0).T, strict=True
        ):
            columns[b][name] = effect
        return [
            Part(name, mean[:, b], low[:, b], high[:, b], columns[b])
            for b, name in enumerate(self.labels)
        ]

    @cached_property
    def residuals(self) -> Tensor:
        """(y_t − E[y_t | y_<t])/sd, with the final posterior of the parameters; NaN where y is
        missing [T]."""
        times = self.series.y.shape[1]
        predictive = self.one_ahead(
            self.series, times, torch.Generator(self.draws.device).manual_seed(0)
        )
        is_observed = self.of.design(self.series).seen
        z = (self.series.y[0, :, 0] - predictive.mean[:, 0]) / predictive.variance[:, 0].sqrt()
        return torch.where(is_observed, z, torch.nan)

    @property
    def inclusion(self) -> dict[str, float]:
        """Inclusion frequency of each column."""
        return self._shares(lambda beta: (beta != 0).double().mean(0))

    @property
    def positive(self) -> dict[str, float]:
        """Frequency of a positive coefficient among the draws that include the column; 1 if none
        does."""
        return self._shares(
            lambda beta: 1 - (beta < 0).double().sum(0) / (beta != 0).double().sum(0).clamp_min(1)
        )

    @property
    def long_run(self) -> dict[str, Tensor]:
        """Total later effect of one unit of each input, for every draw [S].

        It is q/δ for goodwill, and q/(1 − κ) in Koyck's form, ±∞ if κ ≥ 1.
        """
        structure = self.of.structure
        out = {}
        if not self.n_draws:
            return {}
        first = len(structure.scales)
        lag = structure.lag
        for name, j, q, b in zip(
            structure.column_names,
            structure.beta,
            structure.fades.tolist(),
            structure.column_block.tolist(),
            strict=True,
        ):
            beta = self.flat[:, j]
            if q >= 0:
                out[name] = beta / (1 - self.flat[:, first + q])
            elif (
                lag is not None
                and b == int(structure.column_block[lag[0]])
                and j != structure.beta[lag[0]]
            ):
                fades = 1 - self.flat[:, structure.beta[lag[0]]]
                total = torch.where(fades > 0, beta / fades, beta.sign() * torch.inf)
                out[name.removesuffix("_lag")] = torch.where(beta == 0, 0.0, total)
        return out

    @property
    def units(self) -> dict[str, float]:
        """Unit of each coefficient, in units of its column.

        It is the standard deviation of a standardised column, else 1.
        """
        structure = self.of.structure
        return dict.fromkeys(structure.column_names, 1.0) | structure.units

    def _shares(self, of: Callable[[Tensor], Tensor]) -> dict[str, float]:
        structure = self.of.structure
        names = structure.column_names if self.n_draws else ()
        return dict(zip(names, of(self.flat[:, structure.beta]).tolist(), strict=False))


class StructuralInference(Inference[StructuralSeries, Sequence, Series, S], Generic[S]):
    """Inference of a structural model from the whole series."""

    requires = Requirements(
        kinds={"sequence"},
        batch_kind="series",
        capabilities={StructuralSeries},
    )
    provides = {
        HoldsDraws,
        Forecasts,
        StructuralPosterior,
        Selects,
        AffineInInputs,
        WritesFiles,
    }
