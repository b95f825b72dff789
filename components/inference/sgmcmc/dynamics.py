"""Common keys and steps of stochastic gradient MCMC: step sizes ε_t, and stored states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic, Literal

import torch
from pydantic import BaseModel, NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from components.contracts.checks import Bias, Check
from components.contracts.roles import FinishedRun, Info
from components.inference.chains import C, Sampler, advance, mean_over_chains
from components.inference.step_response import Response, check_step
from components.maths.annealing import cosine_anneal


class StepSizes(BaseModel):
    """Step sizes ε_t for t = 0, 1, …, by ``schedule``.

        constant    ε_t = ε
        polynomial  ε_t = ε (1 + t/b)^−γ,  ½ < γ ≤ 1
        cyclical    ε_t = ε/2 [cos(π (t mod T)/T) + 1],  T steps per cycle

    Polynomial steps fulfil the Robbins–Monro conditions, Σ ε_t = ∞ and Σ ε_t² < ∞.  With constant
    and cyclical steps the bias of order ε does not vanish.  A cycle begins with steps
    of size ε, so that chains can change modes; to store only states of small steps, set ``burn_in``
    and ``thinning`` to multiples of the cycle.  (Zhang et al. also omit the noise in the first part
    of each cycle; here it is always added.)

    Source: Welling & Teh (2011), section 3; Zhang et al. (2020), eq. (1)."""

    step_size: PositiveFloat  # ε > 0, of the first step
    # of ε_t: constant, polynomial ε (1 + t/b)^−γ, or cyclical ε/2 (cos(π (t mod T)/T) + 1), Zhang
    # et al. (2020)
    schedule: Literal["constant", "polynomial", "cyclical"]
    # γ of a polynomial schedule, 0.5 < γ <= 1 by Robbins-Monro; Welling & Teh (2011) use 0.55
    decay: PositiveFloat
    decay_scale: PositiveFloat  # b of a polynomial schedule, > 0: steps until the decay sets in
    # T of a cyclical schedule, steps >= 1; burn_in and thinning should be multiples of it
    cycle_length: PositiveInt
    burn_in: NonNegativeInt  # steps before states are stored; Gallego (2021) section 2.3.3
    thinning: PositiveInt  # every n-th state is stored; Gallego (2021) section 2.3.3

    @model_validator(mode="after")
    def _check_decay(self) -> StepSizes:
        if self.schedule == "polynomial" and not 0.5 < self.decay <= 1:
            raise ValueError(
                f"decay: {self.decay} violates the Robbins-Monro conditions; use a value in (0.5, 1]"
            )
        return self

    def step_size_at(self, t: int) -> float:
        """ε_t after t ≥ 0 steps."""
        if self.schedule == "polynomial":
            return self.step_size * (1 + t / self.decay_scale) ** -self.decay
        if self.schedule == "cyclical":
            return cosine_anneal(self.step_size, 0.0, t % self.cycle_length, self.cycle_length)
        return self.step_size

    def largest_step(self, t: int) -> float:
        """The largest ε of the steps since draws are stored, or of all steps before that, after t ≥
        1 steps."""
        first = self.burn_in if t > self.burn_in else 0
        last = min(t, first + self.cycle_length) if self.schedule == "cyclical" else first + 1
        return max(self.step_size_at(s) for s in range(first, last))


class GradientDynamics(Sampler[C], StepSizes, Generic[C]):
    """Base of samplers that follow the gradient of the log joint with steps of size ε_t."""

    folds_replicates = {"density"}
    draw_bias = Bias(
        "its step size",
        {
            "schedule": "constant",
            "adapt": "burn_in",
            "annealing": 0.0,
            "coldness": 1.0,
            "refine": False,
            "damping": 0.1,
        },
    )

    def response(self, state: C) -> Response | None:
        """Response of the largest step since draws are stored; None if it is not linear."""
        return None

    def checks(self, run: FinishedRun) -> list[Check]:
        response = self.response(run.state)
        return [] if response is None else [check_step(run, response)]

    def advance(self, state: C, theta: Tensor, **others: Any) -> C:
        """The next state at θ [C, P], with new values of its other fields.

        Raises:
            NumericalError: a chain becomes non-finite.
        """
        return replace(advance(state, theta, self.burn_in, self.thinning), **others)

    def describe_step(self, state: C, value: Tensor, gradient: Tensor, eps: float) -> Info:
        """Info of a step of size ε that used log joints [C] and their gradients [C, P]."""
        R = state.replicates
        return {
            "log_joint": mean_over_chains(value, R),
            "grad_norm": mean_over_chains(torch.linalg.vector_norm(gradient, dim=1), R),
            "step_size": eps,
            "draws": len(state.kept),
        }
