"""Limited-memory BFGS on the whole data set, one iteration a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import Elbo, Hyperparameters
from components.contracts.problems import Batch, Sees
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.maths.strong_wolfe import Trial, strong_wolfe
from components.posteriors.variational import VariationalPosterior
from components.problems.supervised import Supervised
from components.registry import register
from components.trouble import NumericalTrouble

CURVATURE_FLOOR = 1e-10  # pairs with sᵀ y below this much of ‖s‖ ‖y‖ would spoil the inverse Hessian


@dataclass
class LBFGSRun:
    """One restart: where it is, and what it knows of the curvature there."""

    theta: Tensor  # [P]
    value: float  # f
    gradient: Tensor  # ∇f [P]
    S: Tensor  # steps s = θ' − θ of the last ``memory`` iterations [K, P]
    Y: Tensor  # changes of the gradient y = ∇f' − ∇f [K, P]
    terms: dict[str, Tensor] = field(default_factory=dict)  # of the bound
    iteration: int = 0
    evaluations: int = 0
    step_size: float = 0.0
    converged: bool = False

    def forget(self) -> None:
        """Drops the curvature pairs: the next step is along −∇f."""
        self.S, self.Y = self.S[:0], self.Y[:0]


@dataclass
class LBFGSState:
    """A model at the best restart's θ, and all restarts."""

    module: Elbo
    noise: Any  # drawn once, whatever ``elbo`` reads
    runs: list[LBFGSRun]


def flatten(parameters: Sequence[Tensor]) -> Tensor:
    """Parameters as one vector θ [P]."""
    return torch.cat([p.detach().reshape(-1) for p in parameters])


@torch.no_grad()
def assign(parameters: Sequence[Tensor], theta: Tensor) -> None:
    """The inverse of ``flat``, in place."""
    for p, part in zip(parameters, theta.split([p.numel() for p in parameters]), strict=True):
        p.copy_(part.view_as(p))


def find_direction(gradient: Tensor, S: Tensor, Y: Tensor) -> Tensor:
    """−H ∇f by the two-loop recursion, from the pairs s = θ' − θ and y = ∇f' − ∇f [K, P], oldest first.

    Source: Nocedal and Wright (2006), Algorithm 7.4."""
    q, K = -gradient, S.shape[0]
    rho = 1 / (S * Y).sum(1)  # [K]
    alpha = [torch.zeros(())] * K
    for i in reversed(range(K)):
        alpha[i] = rho[i] * (S[i] @ q)
        q = torch.addcmul(q, -alpha[i], Y[i])
    if K:
        q = q / (rho[-1] * (Y[-1] @ Y[-1]))  # eq. (7.20)
    for i in range(K):
        q = torch.addcmul(q, alpha[i] - rho[i] * (Y[i] @ q), S[i])
    return q


@register("inference", "lbfgs")
class LBFGS(Inference[Elbo, Supervised, Batch, LBFGSState]):
    """Limited-memory BFGS with a strong-Wolfe line search on the ELBO of the whole data, for shallow Gaussian processes.

        θ ← θ − α H ∇f(θ),   f = −ELBO,   H from the last ``memory`` pairs (Δθ, Δ∇f)

    f is of the whole training set, whatever the batch size of the data set.  Monte-Carlo noise, where a likelihood needs
    any, is drawn once and kept, so that f is a function.  One step of the runner is one iteration of every restart; what
    has converged is left alone, and the best restart is the posterior.
    Info: the best restart's elbo and terms in nats, grad_norm (largest |∂f/∂θ|), step_size, evaluations so far of all
    restarts, converged (1 when all have).

    Source: Nocedal and Wright (2006), Algorithms 7.5, 3.5 and 3.6; Boustati (2021), A.1.2.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    sees: ClassVar[Sees] = "whole"
    needs: ClassVar[frozenset[str]] = frozenset({"elbo"})
    gives: ClassVar[frozenset[str]] = frozenset({"predicts", "redraws", "holds_module"})

    memory: PositiveInt
    tolerance: NonNegativeFloat
    gradient_tolerance: NonNegativeFloat
    max_evaluations: PositiveInt
    restarts: PositiveInt
    restart_scale: NonNegativeFloat
    n_samples: PositiveInt
    n_predict: PositiveInt

    def asked_by_keys(self) -> dict[str, str]:
        return {"hyperparameters": "restarts"} if self.restarts > 1 else {}

    # ---- the start ---------------------------------------------------------------------------------------------------
    def _starts(self, module: Elbo, rng: Rng) -> list[Tensor]:
        """Initial θ of each restart; after the first, hyper-parameters (on their unbounded scale) plus normal noise."""
        parameters = list(module.parameters())
        first = flatten(parameters)
        starts = [first]
        for _ in range(1, self.restarts):
            assert isinstance(module, Hyperparameters)
            with torch.no_grad():
                for p in module.hyperparameters():
                    p.add_(self.restart_scale * torch.randn(p.shape, generator=rng.init, dtype=p.dtype).to(p.device))
            starts.append(flatten(parameters))
            assign(parameters, first)
        return starts

    def init(self, model: Elbo, problem: Supervised, rng: Rng) -> LBFGSState:
        noise = model.draw_noise(problem.train, self.n_samples, rng.noise)
        runs = []
        for theta in self._starts(model, rng):
            none = theta.new_zeros(0, theta.numel())  # of the curvature pairs
            runs.append(LBFGSRun(theta, float("inf"), torch.zeros_like(theta), none, none))
        return LBFGSState(model, noise, runs)

    # ---- one iteration -----------------------------------------------------------------------------------------------
    def _iterate(self, run: LBFGSRun, evaluate: Callable[[Tensor], tuple[float, Tensor, dict[str, Tensor]]]) -> None:
        """Replaces a run's θ by the next; sets ``converged`` when f or its gradient stops changing."""
        if run.iteration == 0:
            run.value, run.gradient, run.terms = evaluate(run.theta)
            run.evaluations += 1
        run.iteration += 1
        theta, value, gradient = run.theta, run.value, run.gradient
        if float(gradient.abs().max()) <= self.gradient_tolerance:
            run.converged = True
            return
        along = find_direction(gradient, run.S, run.Y)
        slope = float(gradient @ along)
        fresh = run.S.shape[0] == 0
        if not slope < 0:  # rounding has spoilt the curvature pairs: start again from the gradient
            along, slope, fresh = -gradient, -float(gradient @ gradient), True
            run.forget()

        def phi(step: float) -> Trial:
            try:
                f, g, terms = evaluate(theta + step * along)
            except NumericalTrouble:  # too far: the line search comes back
                return Trial(step, float("inf"), float("nan"))
            return Trial(step, f, float(g @ along), (g, terms))

        first = min(1.0, 1.0 / float(gradient.norm())) if fresh else 1.0
        trial, evaluations = strong_wolfe(phi, Trial(0.0, value, slope), first, self.max_evaluations)
        run.evaluations += evaluations
        if trial is None:
            # No decrease along −H ∇f: forget H; along −∇f itself there is none to be had in this arithmetic.
            run.converged = fresh
            run.forget()
            return
        new_gradient, run.terms = trial.found
        s, y = trial.step * along, new_gradient - gradient
        if float(s @ y) > CURVATURE_FLOOR * float(s.norm() * y.norm()):
            # Freshly laid out, not a slice: BLAS rounds by address, and a resumed run's pairs start at an aligned one.
            oldest = max(run.S.shape[0] - self.memory + 1, 0)
            run.S, run.Y = torch.cat([run.S[oldest:], s[None]]), torch.cat([run.Y[oldest:], y[None]])
        run.theta, run.value, run.gradient = theta + trial.step * along, trial.value, new_gradient
        run.step_size = trial.step
        scale = max(abs(value), abs(trial.value), 1.0)
        run.converged = value - trial.value <= self.tolerance * scale

    def step(self, state: LBFGSState, batch: Batch, rng: Rng) -> tuple[LBFGSState, Info]:
        module = state.module
        parameters = list(module.parameters())

        def evaluate(theta: Tensor) -> tuple[float, Tensor, dict[str, Tensor]]:
            """f, ∇f and the terms of the bound at θ."""
            assign(parameters, theta)
            terms = module.elbo(batch, state.noise)
            gradients = torch.autograd.grad(-terms["elbo"], parameters, allow_unused=True, materialize_grads=True)
            kept = {name: value.detach() for name, value in terms.items()}
            return -float(kept["elbo"]), flatten(gradients), kept

        for run in state.runs:
            if not run.converged:
                self._iterate(run, evaluate)
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

    def posterior(self, state: LBFGSState) -> VariationalPosterior:
        return VariationalPosterior(state.module, self.n_predict)
