"""Density problems with exact moments, runs of samplers on them, and the correctness gate for their
draws."""

from __future__ import annotations

import math
from typing import Any

import torch
from support.runs.configured import component
from support.runs.real_files import FOLDER, find_or_skip
from support.small.small_problems import train
from support.targets.exact_moments import school_moments
from support.targets.known_targets import F64, GammaTarget, correlated_gaussian
from torch import Tensor

from components.contracts.roles import Setting
from components.datasets.densities.posteriordb import paths, regression
from components.datasets.posteriordb_densities.eight_schools import eight_schools
from components.datasets.posteriordb_densities.gaussian_regressions import GaussianRegression
from components.datasets.posteriordb_densities.scale_priors import flat
from components.models.target_density import TargetDensityModule
from components.posteriors.draws import Draws
from components.problems.density import Density
from runner.execution.rng import Streams

CPU = torch.device("cpu")
EMPTY = torch.empty(0, dtype=F64)
# Rubin (1981), Table 1
RUBIN = {"y": [28, 8, -3, 7, -1, 1, 18, 12], "sigma": [15, 10, 16, 11, 9, 11, 10, 18]}


def as_density(target: Any, name: str, moments: tuple[Tensor, Tensor]) -> Density:
    log_density = target.log_density if hasattr(target, "log_density") else target.log_prior
    start = target.start if hasattr(target, "start") else target.sample_prior
    box = [(-1.0, 1.0)] * len(target.names)
    return Density(
        name, target.names, log_density, start, *moments, box, target.constrain, target.dim
    )


def built_in(name: str) -> Density:
    """Four targets that need no data file: two densities in closed form, and two posteriors with
    moments by quadrature."""
    if name in ("gaussian", "gamma"):
        target = correlated_gaussian() if name == "gaussian" else GammaTarget()
        return as_density(target, name, (target.first, target.second))
    if name == "regression":
        regressed = regression(EMPTY)
        return as_density(regressed, name, regressed.exact_moments())
    schools = eight_schools(RUBIN, EMPTY)
    return as_density(schools, name, school_moments(RUBIN))


BUILT_IN = ["gaussian", "gamma", "regression", "eight schools"]


def posteriordb(posterior: str) -> Density:
    """The posterior with its reference; skips without its files."""
    find_or_skip(*paths(posterior))
    setting = Setting(FOLDER, CPU, F64, 1, offline=True)
    return component("dataset", "posteriordb", posterior=posterior).load(Streams(0), setting)


class InBlocks(TargetDensityModule):
    """A regression with a flat prior on its scale, and both full conditionals: β | σ, y and σ | β,
    y.

    σ² | β, y ~ Γ⁻¹((n − 1)/2, ‖y − Xβ‖²/2);  β | σ, y ~ N(β̂ + A⁻¹Λ(m − β̂), A⁻¹), A = RᵀR/σ² + Λ."""

    blocks = ["beta", "sigma"]

    def __init__(self, problem: Density, posterior: GaussianRegression):
        super().__init__(problem)
        assert posterior.scale_prior is flat
        self.posterior = posterior

    def draw_block(
        self, block: str, theta: Tensor, batch: Any, generator: torch.Generator
    ) -> Tensor:
        p = self.posterior
        log_scale = theta[:, -1:]
        if block == "sigma":
            squares = ((theta[:, :-1] - p.beta_hat) @ p.R.T).square().sum(
                1, keepdim=True
            ) + p.residual
            gamma = torch._standard_gamma(
                torch.full_like(log_scale, (p.n - 1) / 2), generator=generator
            )
            return torch.cat([theta[:, :-1], 0.5 * (squares / (2 * gamma)).log()], 1)
        A = (p.R.T @ p.R) * (-2 * log_scale).exp().unsqueeze(2) + p.prior_precision.diag()
        L = torch.linalg.cholesky(A)  # [K, D, D]
        z = torch.randn(len(theta), len(p.beta_hat), 1, generator=generator, dtype=theta.dtype)
        shift = torch.cholesky_solve(
            (p.prior_precision * (p.prior_mean - p.beta_hat)).expand(len(theta), -1)[..., None], L
        )
        away = torch.linalg.solve_triangular(L.mT, z, upper=True)
        return torch.cat([p.beta_hat + (shift + away).squeeze(2), log_scale], 1)


def sample_problem(
    name: str, problem: Density, steps: int, model: Any = None, seed: int = 0, **settings: Any
) -> Draws:
    """Draws of the inference ``name`` after ``steps`` steps, with the defaults of its YAML
    overridden by ``settings``."""
    inference = component("inference", name, **settings)
    module = TargetDensityModule(problem) if model is None else model
    return inference.posterior(train(inference, module, problem, steps, seed)[0])


def faults(scores: dict[str, Any]) -> list[str]:
    """Failures of a sampler at the gate, from its scores; empty if it passes.

    |z| ≤ 4 for the first and second moments of every parameter and errors ≤ 0.1 standard
    deviations; R̂ ≤ 1.01 and bulk ESS ≥ 400, or for weighted draws the ESS of the weights ≥ 400 and
    Pareto k̂ ≤ 0.7."""
    most = {"z_max": 4.0, "error_sd": 0.1}
    if "weight_ess" in scores:
        most = most | {"pareto_k": 0.7}
        least = {"weight_ess": 400.0}
    else:
        most = most | {"rhat": 1.01}
        least = {"ess": 400.0}
    results = [
        f"{k} {scores[k]:.3g} > {v:g}" for k, v in most.items() if not scores.get(k, math.nan) <= v
    ]
    return results + [
        f"{k} {scores[k]:.3g} < {v:g}" for k, v in least.items() if not scores.get(k, math.nan) >= v
    ]
