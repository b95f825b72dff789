"""Maximum likelihood of structural time series."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import StructuralSeries
from components.contracts.checks import Check
from components.contracts.costs.counts import count
from components.contracts.roles import FinishedRun, Info
from components.contracts.sequences import Series
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng, seed_from
from components.contracts.structural import Design, Structure
from components.errors import ConfigMismatchError
from components.maths.compiled.loops import Array, to_array
from components.maths.exponential.standard_draws import standard_normal
from components.maths.line_search.limited_memory import (
    Evaluation,
    LBFGSRun,
    Tolerance,
    init_lbfgs,
    iterate,
)
from components.registry import register
from components.series.sequence import Sequence
from components.series.structural.compiled.likelihood import log_density
from components.series.structural.compiled.simulation_smoother import (
    StateRandomNumbers,
    SystemMotion,
    kept_values,
    simulate_states,
)
from components.series.structural.stationary import coefficients_to_partial, partial_to_coefficients
from components.series.structural.structural_posterior import (
    StructuralDraws,
    StructuralInference,
    parts_of,
)
from components.series.structural.sweep import compile_system

WIDE = 100.0  # standard deviation of a coefficient in forecasts, in its units: a nearly flat prior
SMALLEST_START = 0.05  # smallest initial standard deviation of a search, in units of sd(y)


@dataclass(frozen=True)
class Coordinates:
    """Map z -> θ [1, P]: logarithms of σ, logits of bounded φ, atanh of the partial
    autocorrelations of stationary φ, β in units of sd(y) over the root mean square of its column;
    columns that are never in are left out."""

    structure: Structure
    units: Tensor  # of β [p]
    taken: Tensor  # columns that may be included [p] bool

    @classmethod
    def of(cls, structure: Structure, design: Design) -> Coordinates:
        is_observed = design.seen
        y = design.y[is_observed]
        size = design.X[is_observed].square().mean(0).sqrt()
        units = torch.where(size > 0, y.std() / size, 1.0)
        return cls(structure, units, structure.inclusion > 0)

    @property
    def free(self) -> Tensor:
        """Columns whose coefficients are integrated out in forecasts [p]: all that may be included
        except y_{t−1}."""
        free = self.taken.to(self.units)
        if self.structure.lag is not None:
            free[self.structure.lag[0]] = 0.0
        return free

    def start(self, design: Design, spread: Tensor) -> Tensor:
        """Starting point of a search; ``spread`` [S] shifts the logarithms of σ."""
        s = self.structure
        sd = float(design.y[design.seen].std())
        sigma = torch.full_like(spread, SMALLEST_START * sd)
        sigma[0] = 0.5 * sd
        parts = [sigma.log() + spread]
        for moves in s.transitions:
            phi = spread.new_tensor([moves.start])
            if moves.within is None:
                parts.append(coefficients_to_partial(phi).atanh().squeeze(0))
            else:
                low, high = moves.within
                parts.append(((phi - low) / (high - low)).logit().squeeze(0))
        return torch.cat([*parts, spread.new_zeros(int(self.taken.sum()))])

    def theta(self, z: Tensor) -> Tensor:
        s = self.structure
        start = len(self.structure.scales)
        parts = [z[:start].exp()]
        for moves in s.transitions:
            z_part = z[start : start + moves.count]
            if moves.within is None:
                parts.append(partial_to_coefficients(z_part.tanh().unsqueeze(0)).squeeze(0))
            else:
                low, high = moves.within
                parts.append(low + (high - low) * z_part.sigmoid())
            start += moves.count
        beta = z.new_zeros(len(s.column_names)).masked_scatter(self.taken, z[start:]) * self.units
        return torch.cat([*parts, beta]).unsqueeze(0)


@dataclass(kw_only=True)
class Searches:
    """Searches for the best parameters, from several starts."""

    model: StructuralSeries = not_checkpointed()
    series: Series = not_checkpointed()
    seed: int  # of the draws of the states
    runs: list[LBFGSRun]

    @property
    def best(self) -> LBFGSRun:
        return min(self.runs, key=lambda run: run.value)


@register("inference", "structural_mle")
class StructuralMLE(StructuralInference[Searches]):
    """Maximum likelihood of a structural time series by L-BFGS: a baseline without priors.

        θ̂ = argmax log p(y_1:T | θ), by the Kalman filter and the scores of the smoother
        α ~ p(α | y, θ̂)

    The optimizer is limited-memory BFGS.  One step is one iteration for each of ``restarts``
    starts; converged ones are left unchanged, and the best gives the posterior, a point mass at θ̂;
    only forecasts integrate out the coefficients of columns, under a flat prior given the other
    parameters.  All columns with π above 0 are included; initial states keep their Gaussian priors.
    Standard deviations are optimised as logarithms, and may tend to 0.
    Info: log_likelihood, grad_norm, converged (1 if all starts have converged).

    Raises:
        ConfigMismatchError: the errors are Student's t, whose likelihood has no closed form.

    Source: Durbin and Koopman (2012), section 7.3; Koopman and Shephard (1992); Harvey (1989), section 3.4.
    """

    mixes = False

    restarts: PositiveInt
    restart_scale: NonNegativeFloat
    memory: PositiveInt
    tolerance: NonNegativeFloat
    gradient_tolerance: NonNegativeFloat
    max_evaluations: PositiveInt
    draws: PositiveInt

    def init(self, model: StructuralSeries, problem: Sequence, rng: Rng) -> Searches:
        if model.structure.errors.student:
            raise ConfigMismatchError(
                f"inference={self.name}: the likelihood of Student's t errors has no closed form; "
                "set model.errors=gaussian or inference=structural_gibbs"
            )
        design = model.design(problem.series)
        coordinates = Coordinates.of(model.structure, design)
        like = design.y
        scales = len(model.structure.scales)
        runs = []
        for restart in range(self.restarts):
            normal = standard_normal((scales,), rng.init, like)
            runs.append(
                init_lbfgs(coordinates.start(design, self.restart_scale * normal * (restart > 0)))
            )
        seed = seed_from(rng.init)
        return Searches(model=model, series=problem.series, seed=seed, runs=runs)

    def step(self, state: Searches, batch: Series, rng: Rng) -> tuple[Searches, Info]:
        design = state.model.design(batch)
        coordinates = Coordinates.of(state.model.structure, design)
        system = compile_system(state.model.structure, design)

        def evaluate(z: Tensor) -> Evaluation:
            z = z.detach().requires_grad_()
            count(densities=1, gradients=1, forwards=len(design.seen))
            moving = state.model.system(coordinates.theta(z), design)
            value, linear = log_density(design.y, system, moving)
            return -value, -torch.autograd.grad(linear, z)[0], {}

        tolerance = Tolerance(self.tolerance, self.gradient_tolerance)
        for run in state.runs:
            if not run.converged:
                iterate(run, evaluate, self.memory, tolerance, self.max_evaluations)
        best = state.best
        return state, {
            "log_likelihood": -best.value,
            "grad_norm": best.gradient.abs().max(),
            "converged": float(all(run.converged for run in state.runs)),
        }

    def checks(self, run: FinishedRun) -> list[Check]:
        """Check that the best of the restarts has converged."""
        state: Searches = run.state
        best = state.best
        detail = f"the best of {len(state.runs)} starts after {best.iteration} iterations"
        if not best.converged:
            slope = float(best.gradient.abs().max())
            detail += f", largest derivative {slope:.2g} nats; raise steps"
        return [Check("the maximum of the likelihood is reached", best.converged, detail, True)]

    @torch.no_grad()
    def posterior(self, state: Searches) -> StructuralDraws:
        model = state.model
        design = state.model.design(state.series)
        coordinates = Coordinates.of(model.structure, design)
        theta = coordinates.theta(state.best.theta)
        many = theta.expand(self.draws, -1)
        generator = torch.Generator(theta.device).manual_seed(state.seed)
        system = model.system(many, design)
        compiled_system = compile_system(model.structure, design)
        noisy = compiled_system.noisy

        def normal(*shape: int) -> Array:
            drawn = standard_normal(shape, generator, theta)
            return to_array(drawn)

        (times, d), n = design.F.shape, self.draws
        numbers = StateRandomNumbers(
            normal(n, d), normal(n, times - 1, len(noisy)), normal(n, times)
        )
        scale = system.W[:, noisy].sqrt()
        noise = system.noise.sqrt()
        motion = SystemMotion(
            kept_values(compiled_system, system.G), to_array(scale), to_array(noise)
        )
        drawn = simulate_states(
            to_array(design.y - system.offset), compiled_system, motion, numbers
        )
        states = torch.from_numpy(drawn).to(theta)
        return StructuralDraws(
            theta.unsqueeze(0),
            coordinates.theta(state.runs[0].theta),
            list(model.structure.names),
            of=model,
            series=state.series,
            contributions=parts_of(model, many, states, design).unsqueeze(0),
            coefficient_sd=WIDE * coordinates.units * coordinates.free,
        )
