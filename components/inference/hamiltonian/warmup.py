"""The keys, the state and the warm-up that Hamiltonian samplers share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from pydantic import BaseModel, Field, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.problems import Sees
from components.contracts.streams import Rng
from components.inference.chains import Chains, Sampled, Seen, first_batch, moved, started
from components.inference.hamiltonian.adaptation import (
    DualAveraging,
    Scatter,
    Tuning,
    reasonable_step,
    settled,
    windows,
)
from components.inference.hamiltonian.chees import Length
from components.inference.hamiltonian.leapfrog import Phase
from components.inference.hamiltonian.mass import Mass, Shape
from components.inference.log_joint import value_and_gradient


@dataclass(kw_only=True)
class HamiltonianChains(Chains):
    """The state of chains that follow trajectories."""

    value: Tensor  # log π(θ) [C]
    gradient: Tensor  # [C, P]
    tuning: Tuning
    divergences: Tensor  # trajectories after warm-up that diverged []
    length: Length | None = None  # of trajectories; None: they end by themselves


class WarmUp(BaseModel):
    """Keys of samplers whose step size and masses are learnt in warm-up, from all chains together.

    After warm-up nothing is learnt, so that what is kept comes from one fixed kernel."""

    chains: PositiveInt
    warmup: NonNegativeInt
    thinning: PositiveInt  # one state in so many is kept
    step_size: PositiveFloat  # ε of the first step; the one of all steps when warmup is 0
    target_acceptance: Annotated[float, Field(gt=0, lt=1)]
    mass: Shape  # M⁻¹: identity, or the covariance of the chains, its diagonal or dense

    def begun(self, model: LogJoint, problem: Sampled, sees: Sees, rng: Rng) -> HamiltonianChains:
        """The state before the first step."""
        state = started(model, problem, sees, self.chains, rng)
        batch, theta = first_batch(problem, sees, rng), state.theta
        value, gradient = value_and_gradient(model, theta, batch)  # [C], [C, P]
        ones, dense = theta.new_ones(theta.shape[1]), self.mass == "dense"
        unit = Mass.of(torch.diag(ones) if dense else ones)
        tuning = Tuning(self.step_size, unit, DualAveraging.around(self.step_size), Scatter.none(theta, dense))
        divergences = torch.zeros((), device=theta.device, dtype=torch.long)
        return HamiltonianChains(**vars(state), value=value, gradient=gradient, tuning=tuning, divergences=divergences)

    def ready(self, state: HamiltonianChains, batch: Seen, rng: Rng) -> tuple[Phase, Tuning]:
        """Where the chains are, with fresh momenta r ~ N(0, M), and the tuning with which to go on."""
        theta, tuning = state.theta, state.tuning
        z = Phase(theta, theta, state.value, state.gradient)
        if state.t == 0 and self.warmup > 0:
            eps = reasonable_step(state.model, batch, tuning.mass, self.step_size, z, rng.noise)
            tuning = replace(tuning, step_size=eps, averaging=DualAveraging.around(eps))
        return replace(z, r=tuning.mass.momentum(theta, rng.noise)), tuning

    def learnt(
        self, tuning: Tuning, state: HamiltonianChains, batch: Seen, z: Phase, rate: Tensor | float, rng: Rng
    ) -> Tuning:
        """The tuning after a step from ``state`` to z that had this acceptance rate; the same after warm-up."""
        step = state.t + 1
        if step > self.warmup:
            return tuning
        averaging = tuning.averaging.learnt(float(rate), self.target_acceptance)
        tuning = replace(tuning, averaging=averaging, step_size=settled(math.exp(averaging.log_step)))
        initial, ends = windows(self.warmup)
        if self.mass != "identity" and ends and initial < step <= ends[-1]:
            tuning = replace(tuning, scatter=tuning.scatter.with_states(z.theta))
            if step in ends:
                mass = Mass.of(tuning.scatter.covariance())
                eps = math.exp(averaging.log_average)
                eps = reasonable_step(state.model, batch, mass, eps, z, rng.noise)
                return Tuning(eps, mass, DualAveraging.around(eps), Scatter.none(z.theta, self.mass == "dense"))
        if step == self.warmup:
            return replace(tuning, step_size=settled(math.exp(averaging.log_average)))
        return tuning

    def arrived(
        self, state: HamiltonianChains, tuning: Tuning, z: Phase, diverging: Tensor, stats: dict[str, Tensor]
    ) -> HamiltonianChains:
        """The state one step on, at z; ``stats`` [C] are of the trajectories that led there."""
        divergences = state.divergences
        if state.t >= self.warmup:
            divergences = divergences + diverging.sum()
        stats = {"lp": z.value, "diverging": diverging, **stats}
        state = replace(state, value=z.value, gradient=z.gradient, tuning=tuning, divergences=divergences)
        return moved(state, z.theta, self.warmup, self.thinning, stats)
