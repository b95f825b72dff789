"""Shared keys, state and warm-up of Hamiltonian samplers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import Collapsible, LogJoint
from components.contracts.capabilities.densities import Collapsed
from components.contracts.problems import Target
from components.contracts.requirements import WHOLE_DATA
from components.contracts.roles import BetweenZeroAndOne
from components.contracts.streams import Rng
from components.inference.chains import (
    Chains,
    ModelBatch,
    SampleableProblem,
    Sampler,
    advance,
    first_batch,
)
from components.inference.hamiltonian.adaptation import (
    DualAveraging,
    Scatter,
    Tuning,
    check_step_size,
    find_reasonable_step,
    windows,
)
from components.inference.hamiltonian.chees import Length
from components.inference.hamiltonian.leapfrog import Phase
from components.inference.hamiltonian.mass import Mass, Shape
from components.inference.log_joint import value_and_gradient
from components.inference.superchains import Superchains


@dataclass(kw_only=True)
class HamiltonianChains(Chains):
    """State of chains that follow trajectories."""

    value: Tensor  # log π(θ) [C]; marginal log π if parameters are integrated out
    gradient: Tensor  # [C, P'], with respect to the sampled parameters
    tuning: Tuning
    divergences: Tensor  # divergent trajectories after warm-up []
    length: Length | None = None  # of trajectories; None if determined by their turns


class WarmUp(Superchains, Sampler[HamiltonianChains]):
    """Base of samplers that learn step size and masses in warm-up, from all chains together.

    After warm-up nothing is adapted, so the stored states come from a fixed kernel.  With
    ``collapse`` trajectories move only θ₋, the parameters that are not integrated out, under log
    p(θ₋, y); after each step the others are drawn from p(w | θ₋, y).  θ = (θ₋, w) are then draws of
    the same posterior, and its stiffest directions do not limit the step size.

    Source: Liu (1994), on integrating parameters out.
    """

    requires = WHOLE_DATA
    folds_replicates = frozenset()
    warmup: NonNegativeInt
    thinning: PositiveInt  # every n-th state is stored
    step_size: PositiveFloat  # ε of the first step, and of all steps if warmup is 0
    target_acceptance: BetweenZeroAndOne
    mass: Shape  # M⁻¹: identity, or the covariance of the chains, its diagonal or dense
    # parameters integrated out of the trajectories and drawn after each
    collapse: Literal["none", "last_layer"]

    def asked_by_keys(self) -> dict[type, str]:
        return {Collapsible: "collapse"} if self.collapse != "none" else {}

    def labels_misfit(self, target: Target) -> tuple[str, str] | None:
        return (
            ("collapse=last_layer", "collapse=none")
            if self.collapse != "none" and target != "real"
            else None
        )

    def integrate_out(self, model: LogJoint) -> Collapsed | None:
        """Density of the parameters that are not integrated out; None if no parameters are.

        Raises ConfigMismatchError if the model cannot integrate out the parameters in ``collapse``
        for these data."""
        if self.collapse == "none":
            return None
        assert isinstance(model, Collapsible)
        return model.integrate_out()

    def target(self, model: LogJoint) -> LogJoint:
        """The density for the trajectories.  Raises ConfigMismatchError like ``integrate_out``."""
        return self.integrate_out(model) or model

    def moving(self, model: LogJoint, theta: Tensor) -> Tensor:
        """The sampled part of θ [C, P]."""
        collapsed = self.integrate_out(model)
        return theta if collapsed is None else collapsed.rest(theta)

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> HamiltonianChains:
        state = self.start_chains(model, problem, rng)
        batch = first_batch(problem, self.requires.batch_kind, rng)
        target = self.target(model)
        theta = self.moving(model, state.theta)
        value, gradient = value_and_gradient(target, theta, batch)  # [C], [C, P']
        ones = theta.new_ones(theta.shape[1])
        dense = self.mass == "dense"
        unit = Mass.of(torch.diag(ones) if dense else ones)
        tuning = Tuning(
            self.step_size, unit, DualAveraging.around(self.step_size), Scatter.none(theta, dense)
        )
        divergences = torch.zeros((), device=theta.device, dtype=torch.long)
        return HamiltonianChains(
            **vars(state), value=value, gradient=gradient, tuning=tuning, divergences=divergences
        )

    def ready(self, state: HamiltonianChains, batch: ModelBatch, rng: Rng) -> tuple[Phase, Tuning]:
        """Positions of the chains with fresh momenta r ~ N(0, M), and the tuning for the step."""
        target = self.target(state.model)
        tuning = state.tuning
        theta = self.moving(state.model, state.theta)
        z = Phase(theta, theta, state.value, state.gradient)
        if state.t == 0 and self.warmup > 0:
            eps = find_reasonable_step(target, batch, tuning.mass, self.step_size, z, rng.noise)
            tuning = replace(tuning, step_size=eps, averaging=DualAveraging.around(eps))
        return replace(z, r=tuning.mass.momentum(theta, rng.noise)), tuning

    def learnt(
        self,
        tuning: Tuning,
        state: HamiltonianChains,
        batch: ModelBatch,
        z: Phase,
        rate: Tensor,
        rng: Rng,
    ) -> Tuning:
        """The tuning after a step from ``state`` to z with this acceptance rate; unchanged after
        warm-up."""
        step = state.t + 1
        if step > self.warmup:
            return tuning
        averaging = tuning.averaging.learnt(float(rate), self.target_acceptance)
        tuning = replace(
            tuning, averaging=averaging, step_size=check_step_size(math.exp(averaging.log_step))
        )
        initial, ends = windows(self.warmup)
        if self.mass != "identity" and ends and initial < step <= ends[-1]:
            tuning = replace(tuning, scatter=tuning.scatter.with_states(z.theta))
            if step in ends:
                mass = Mass.of(tuning.scatter.covariance())
                eps = math.exp(averaging.log_average)
                eps = find_reasonable_step(self.target(state.model), batch, mass, eps, z, rng.noise)
                return Tuning(
                    eps,
                    mass,
                    DualAveraging.around(eps),
                    Scatter.none(z.theta, self.mass == "dense"),
                )
        if step == self.warmup:
            return replace(tuning, step_size=check_step_size(math.exp(averaging.log_average)))
        return tuning

    def record_transition(
        self,
        state: HamiltonianChains,
        batch: ModelBatch,
        tuning: Tuning,
        z: Phase,
        diverging: Tensor,
        stats: dict[str, Tensor],
        rng: Rng,
    ) -> HamiltonianChains:
        """The next state at z, after drawing the integrated-out parameters; ``stats`` [C] are those
        of the trajectories."""
        divergences = state.divergences
        if state.t >= self.warmup:
            divergences = divergences + diverging.sum()
        stats = {"lp": z.value, "diverging": diverging, **stats}
        state = replace(
            state, value=z.value, gradient=z.gradient, tuning=tuning, divergences=divergences
        )
        collapsed = self.integrate_out(state.model)
        theta = z.theta
        if collapsed is not None:
            assert batch is not None  # a model of data
            theta = collapsed.complete(theta, batch, rng.noise)
        return advance(state, theta, self.warmup, self.thinning, stats)
