"""Samplers of one gradient estimate a step, at the positions of the chains."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import C, Chains, ModelBatch, SampleableProblem
from components.inference.log_joint import value_and_gradient
from components.inference.sgmcmc.control_variates import GradientEstimates, Reference
from components.inference.sgmcmc.dynamics import GradientDynamics


class GradientSteps(GradientDynamics[C], Generic[C]):
    """Base of samplers that move the chains by the gradient where they are."""

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> C:
        return self.begin(self.start_chains(model, problem, rng), rng)

    def step(self, state: C, batch: ModelBatch, rng: Rng) -> tuple[C, Info]:
        eps = self.step_size_at(state.t)
        state, value, gradient = self.find_gradient(state, batch)
        state, facts = self.move(state, gradient, eps, batch, rng)
        return state, self.describe_step(state, value, gradient, eps) | facts

    def find_gradient(self, state: C, batch: ModelBatch) -> tuple[C, Tensor, Tensor]:
        """The state, log joints [C] at its positions, and their gradients [C, P]."""
        return state, *value_and_gradient(state.model, state.theta, batch)

    @abstractmethod
    def begin(self, chains: Chains, rng: Rng) -> C:
        """The state before the first step, of chains at their starts."""

    @abstractmethod
    def move(
        self, state: C, gradient: Tensor, eps: float, batch: ModelBatch, rng: Rng
    ) -> tuple[C, Info]:
        """The state after a step of size ε by the gradient [C, P], and further facts of it."""


@dataclass(kw_only=True)
class ControlledChains(Chains):
    control: Reference | None  # subtracted from gradient estimates; None: nothing


S = TypeVar("S", bound=ControlledChains)


class ControlledSteps(GradientSteps[S], GradientEstimates, Generic[S]):
    """Base of those that can subtract a control variate from the gradient."""

    def start_chains(
        self, model: LogJoint, problem: SampleableProblem, rng: Rng, gradient: bool = True
    ) -> Chains:
        chains = super().start_chains(model, problem, rng, gradient)
        control = self.init_reference(model, chains.theta, problem)
        return ControlledChains(**vars(chains), control=control)

    def find_gradient(self, state: S, batch: ModelBatch) -> tuple[S, Tensor, Tensor]:
        model, theta = state.model, state.theta
        control = self.refresh_reference(state.control, model, theta, state.t)
        return replace(state, control=control), *self.estimate(control, model, theta, batch)
