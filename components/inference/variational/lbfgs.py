"""Limited-memory BFGS on the whole data set, one iteration per step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import Elbo, Hyperparameters, LogRatio
from components.contracts.posteriors import BoundsLikelihood, Predicts, Redraws
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.maths.exponential.standard_draws import normal_like
from components.maths.line_search.limited_memory import (
    Evaluation,
    LBFGSRun,
    Tolerance,
    init_lbfgs,
    iterate,
)
from components.maths.line_search.module_bound import assign, evaluate_bound, flatten
from components.posteriors.latent import LatentPosterior
from components.posteriors.variational import VariationalPosterior
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.registry import register


@dataclass
class LBFGSState:
    """A model at the best restart's θ, and all restarts."""

    module: Elbo
    noise: Any  # noise that ``elbo`` reads, drawn once
    runs: list[LBFGSRun]


@register("inference", "lbfgs")
class LBFGS(Inference[Elbo, Supervised | Unlabelled, Any, LBFGSState]):
    """Limited-memory BFGS with a strong-Wolfe line search on the full-data ELBO.

        θ ← θ − α H ∇f(θ),   f = −ELBO,   H from the last ``memory`` pairs (Δθ, Δ∇f)

    For shallow Gaussian processes and models of rows with a latent process.  f uses the whole
    training set, for any batch size of the data set.  Monte-Carlo noise of a likelihood is drawn
    once and fixed, so that f is deterministic.  One step of the runner is one iteration of every
    restart; converged restarts do not change, and the best restart is the posterior.
    Info: the best restart's elbo and terms in nats, grad_norm (largest |∂f/∂θ|), step_size,
    evaluations so far of all restarts, converged (1 if all have converged).

    Source: Nocedal and Wright (2006), Algorithms 7.5, 3.5 and 3.6; Boustati (2021), A.1.2.
    """

    requires = Requirements(
        kinds={"supervised", "unlabelled"},
        batch_kind="whole",
        capabilities={Elbo},
        capabilities_by_kind={"unlabelled": {LogRatio}},  # scores held-out rows
    )
    provides_by_kind = {
        "supervised": {Predicts, Redraws},
        "unlabelled": {BoundsLikelihood},
    }

    memory: PositiveInt
    tolerance: NonNegativeFloat
    gradient_tolerance: NonNegativeFloat
    max_evaluations: PositiveInt
    restarts: PositiveInt
    restart_scale: NonNegativeFloat
    n_samples: PositiveInt
    n_predict: PositiveInt

    def asked_by_keys(self) -> dict[type, str]:
        return {Hyperparameters: "restarts"} if self.restarts > 1 else {}

    # The start
    def _starts(self, module: Elbo, rng: Rng) -> list[Tensor]:
        """Initial θ of each restart; after the first, hyper-parameters (on their unbounded scale)
        plus normal noise."""
        parameters = list(module.parameters())
        first = flatten(parameters)
        starts = [first]
        for _ in range(1, self.restarts):
            assert isinstance(module, Hyperparameters)
            with torch.no_grad():
                for p in module.hyperparameters():
                    p.add_(self.restart_scale * normal_like(p, rng.init))
            starts.append(flatten(parameters))
            assign(parameters, first)
        return starts

    def init(self, model: Elbo, problem: Supervised | Unlabelled, rng: Rng) -> LBFGSState:
        train: Any = problem.train
        noise = model.draw_noise(train, self.n_samples, rng.noise)
        return LBFGSState(model, noise, [init_lbfgs(theta) for theta in self._starts(model, rng)])

    # One iteration
    def step(self, state: LBFGSState, batch: Any, rng: Rng) -> tuple[LBFGSState, Info]:
        module = state.module
        parameters = list(module.parameters())

        def evaluate(theta: Tensor) -> Evaluation:
            """f, ∇f and the terms of the bound at θ."""
            return evaluate_bound(parameters, theta, lambda: module.elbo(batch, state.noise))

        for run in state.runs:
            if not run.converged:
                tolerance = Tolerance(self.tolerance, self.gradient_tolerance)
                iterate(run, evaluate, self.memory, tolerance, self.max_evaluations)
        best = min(state.runs, key=lambda run: run.value)
        assign(parameters, best.theta)
        info: Info = {
            **best.terms,
            "grad_norm": best.gradient.abs().max(),
            "step_size": best.step_size,
            "evaluations": float(sum(run.evaluations for run in state.runs)),
            "converged": float(all(run.converged for run in state.runs)),
        }
        return state, info

    def posterior(self, state: LBFGSState) -> VariationalPosterior | LatentPosterior:
        module: object = state.module
        if isinstance(module, LogRatio):
            return LatentPosterior(module)
        return VariationalPosterior(state.module, n_predict=self.n_predict)
