"""Rate at which the posterior of a regression contracts to the true function."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.contracts.capabilities import Conjugate, LinearSmoother
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Increasing, Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.errors import ConfigMismatchError
from components.inference.foundations.log_slopes import log_slopes, standard_error
from components.inference.foundations.normal_limit import gaussian_hellinger
from components.maths.conjugate_regression import coefficients
from components.maths.exponential.standard_draws import standard_normal
from components.posteriors.tables import write_tables
from components.problems.known_function import KnownFunction
from components.registry import register

if TYPE_CHECKING:
    import pandas as pd

    from components.figures.style import Figures


@dataclass(frozen=True)
class Smoothed:
    """Properties of the posterior at N regular inputs for any labels: f | y ~ N(S y, σ² S)."""

    S: Tensor  # [N, N]
    f0: Tensor  # true function at the inputs [N]
    spread: float  # ∫ (f − E f)² dΠ(f|y), a mean over the inputs: σ² tr S/N
    # Hellinger distance of p(β | E y) from N(β̂, σ²(XᵀX)⁻¹), for a model of coefficients
    hellinger: float | None
    expected: float  # E of the squared error of S y: ‖(S − I) f₀‖²/N + σ₀² tr(SSᵀ)/N

    @classmethod
    def at(cls, model: LinearSmoother, problem: KnownFunction, n: int) -> Smoothed:
        assert problem.f0 is not None
        like = problem.train.x
        x = (torch.arange(n, dtype=like.dtype, device=like.device) + 0.5)[:, None] / n
        S = model.smoother(x)
        f0 = problem.f0(x)
        bias = (S @ f0 - f0).square().mean()
        variance = problem.noise * S.square().sum() / n
        spread = float(model.known_noise * S.trace() / n)
        hellinger = _hellinger(model, x, f0) if isinstance(model, Conjugate) else None
        return cls(S, f0, spread, hellinger, float(bias + variance))


def _hellinger(model: Conjugate, x: Tensor, y: Tensor) -> float:
    """Hellinger distance of N(m, σ²Λ⁻¹), the posterior of β given y, from N(β̂, σ²(XᵀX)⁻¹)."""
    X = torch.cat([x.new_ones(len(x), 1), x], 1) if model.intercept else x
    noise = model.noise
    assert not isinstance(noise, tuple)  # available from linear smoothers
    posterior, limit = (
        coefficients(X, y, penalty) for penalty in (model.penalty, 0 * model.penalty)
    )
    return float(
        gaussian_hellinger(
            posterior.m,
            noise * posterior.covariance,
            limit.m,
            noise * limit.covariance,
        )
    )


@dataclass(frozen=True)
class Contraction:
    """Radii (∫ ‖f − f₀‖² dΠ(f|y))^½ of R data sets at each N, ‖·‖² a mean over inputs; slopes."""

    model: LinearSmoother
    train: Batch
    numbers: list[int]  # [G]
    errors: Tensor  # ‖S y − f₀‖² [R, G]
    smoothed: list[Smoothed]
    exponent: float  # rate predicted by theory

    @property
    def spread(self) -> Tensor:
        return self.errors.new_tensor([smoother.spread for smoother in self.smoothed])  # [G]

    @property
    def radii(self) -> Tensor:
        return (self.errors + self.spread).sqrt()  # [R, G]

    @property
    def exact(self) -> Tensor:
        """Root of the expected squared radius [G]."""
        return (
            self.errors.new_tensor([smoother.expected for smoother in self.smoothed]) + self.spread
        ).sqrt()

    def slopes(self, values: Tensor) -> Tensor:
        """Least squares of log values [..., G] on log N."""
        return log_slopes(values, self.numbers)

    def slope_between(self) -> list[tuple[float, float]]:
        """Slope from each N to the next, with its standard error over the data sets."""
        log_n = self.radii.new_tensor(self.numbers).log()
        log_r = self.radii.log()
        each = log_r.diff(dim=1) / log_n.diff()
        return list(zip(each.mean(0).tolist(), standard_error(each).tolist(), strict=True))

    def slope(self) -> tuple[float, float]:
        """Mean over the data sets of the slope of the radius, and its standard error."""
        each = self.slopes(self.radii)
        return float(each.mean()), float(standard_error(each))

    def predict(self, x: Tensor, generator: torch.Generator) -> GaussianMixture:
        """N(E[f(x) | y], Var f(x) + σ²) at x [B, D], from the training labels."""
        is_observed = self.train.mask[:, 0]
        mean, variance = self.model.condition(
            self.train.x[is_observed], self.train.y[is_observed, 0], x
        )
        return GaussianMixture(
            mean[None, :, None], (variance + self.model.known_noise)[None, :, None]
        )

    def scores(self) -> dict[str, float]:
        if not len(self.errors):
            return {}
        out = {
            "slope": self.slope()[0],
            "slope_exact": float(self.slopes(self.exact)),
            "exponent": self.exponent,
        }
        out["slope_error"] = float(self.slopes(self.errors.sqrt()).mean())
        out["slope_spread"] = float(self.slopes(self.spread.sqrt()))
        out["spread_of_error"] = float((self.spread[-1] / self.errors[:, -1].mean()).sqrt())
        out |= {
            f"radius/{n}": float(r) for n, r in zip(self.numbers, self.radii.mean(0), strict=True)
        }
        return out | self._normal_limit()

    def _normal_limit(self) -> dict[str, float]:
        """Hellinger distances from the normal limit, and their slope; {} without a parameter."""
        each = [smoother.hellinger for smoother in self.smoothed if smoother.hellinger is not None]
        if not each:
            return {}
        by_number = zip(self.numbers, each, strict=True)
        slope = float(log_slopes(self.errors.new_tensor(each), self.numbers))
        return {"slope/hellinger": slope} | {f"hellinger/{n}": h for n, h in by_number}

    def figures(self) -> Figures:
        from components.figures.foundations.contraction import contraction

        if not len(self.errors):
            return {}
        figure = contraction(
            n=self.numbers,
            radii=self.radii,
            squared_errors=self.errors,
            variance=self.spread,
            exact=self.exact,
            exponent=self.exponent,
            slope=self.slope(),
            slope_between=self.slope_between(),
        )
        return {"contraction": figure}

    def table(self) -> pd.DataFrame:
        """One row per N: mean radius with its SE, exact radius, and slope from the previous N."""
        import pandas as pd

        between = [(math.nan, math.nan), *self.slope_between()]
        rows = {
            "n": self.numbers,
            "radius": self.radii.mean(0).tolist(),
            "standard_error": standard_error(self.radii).tolist(),
            "exact": self.exact.tolist(),
            "error_of_the_mean": self.errors.mean(0).sqrt().tolist(),
            "posterior_sd": self.spread.sqrt().tolist(),
            "slope": [slope for slope, _ in between],
            "slope_error": [error for _, error in between],
        }
        return pd.DataFrame(rows)

    def artefacts(self, folder: Path) -> list[Path]:
        """The table ``contraction``."""
        return write_tables(folder, {"contraction": self.table()} if len(self.errors) else {})


@dataclass(frozen=True, kw_only=True)
class ContractionState:
    """Squared errors of the steps so far."""

    model: LinearSmoother = not_checkpointed()
    problem: KnownFunction = not_checkpointed()
    smoothed: list[Smoothed] = not_checkpointed()
    errors: Trace = field(default_factory=Trace)  # rows [R, G], one per step


@register("inference", "posterior_concentration")
class PosteriorConcentration(Inference[LinearSmoother, KnownFunction, Batch, ContractionState]):
    """Rate at which a posterior contracts to the true regression function, compared with theory.

    r_N² = ∫ ‖f − f₀‖²_N dΠ(f | y) = ‖S y − f₀‖²_N + σ² tr S/N, ‖·‖²_N the mean over the inputs x_i
    = (i − ½)/N.  Every step draws ``simulations`` vectors of labels f₀ + N(0, σ₀² I) at each N in
    ``numbers``; the slope of log r_N on log N is computed for each data set.  Theory: −min(α,
    β)/(2α + 1) for a Matérn process of smoothness α and an f₀ of smoothness β, −½ for a parametric
    model that contains f₀. Posterior mass outside M r_N is at most M⁻².

    Raises ConfigMismatchError where the true function is not known.

    Source: van der Vaart & van Zanten (2011), on Matérn kernels; Ghosal & van der Vaart (2017);
    Bardenet (2021), chapter 8."""

    requires = Requirements(
        kinds={"supervised"},
        required_traits={"known_function": "measures the distance to the true function"},
        batch_kind="whole",
        capabilities={LinearSmoother},
    )
    numbers: Annotated[list[Annotated[int, Field(ge=2, le=8192)]], Field(min_length=2), Increasing]
    simulations: PositiveInt

    def init(self, model: LinearSmoother, problem: KnownFunction, rng: Rng) -> ContractionState:
        if not isinstance(problem, KnownFunction):
            raise ConfigMismatchError(
                f"inference={self.name}: the true function must be known, but "
                f"dataset={problem.name} does not define one; use dataset=smooth_function"
            )
        smoothed = [Smoothed.at(model, problem, n) for n in self.numbers]
        return ContractionState(model=model, problem=problem, smoothed=smoothed)

    def step(
        self, state: ContractionState, batch: Batch, rng: Rng
    ) -> tuple[ContractionState, Info]:
        errors = []
        for smoother in state.smoothed:
            e = standard_normal((self.simulations, len(smoother.f0)), rng.noise, smoother.f0)
            y = smoother.f0 + state.problem.noise**0.5 * e
            errors.append((y @ smoother.S.T - smoother.f0).square().mean(1))
        state.errors.append(torch.stack(errors, 1).cpu())
        return replace(state), {"error": errors[-1].mean().sqrt()}

    def posterior(self, state: ContractionState) -> Contraction:
        G = len(self.numbers)
        errors = (
            state.errors.rows.flatten(0, 1)
            if len(state.errors)
            else torch.zeros(0, G, dtype=torch.float64)
        )
        exponent = state.model.exponent(state.problem.smoothness)
        return Contraction(
            state.model, state.problem.train, list(self.numbers), errors, state.smoothed, exponent
        )
