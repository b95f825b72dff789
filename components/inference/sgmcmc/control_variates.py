"""Variance-reduced minibatch gradients by control variates at a reference point, and estimates of
the variance of minibatch gradients from the two halves of a batch.

The minibatch gradient at a reference point with a known full gradient is subtracted.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

import torch
from pydantic import BaseModel, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.problems import Batch
from components.contracts.roles import Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.inference.chains import C, Chains, ModelBatch, SampleableProblem
from components.inference.log_joint import log_joint_gradient, value_and_gradient
from components.inference.sgmcmc.dynamics import GradientDynamics
from components.problems.supervised import Supervised

# rows evaluated together: memory must hold [K, ROWS] likelihoods for every layer
ROWS = 4096


def whole_gradient(model: LogJoint, theta: Tensor, train: Batch) -> tuple[Tensor, Tensor]:
    """Log joint [K] of the whole training set, and its gradient [K, P], in chunks of rows."""
    value, gradient = value_and_gradient(model, theta, train.part(slice(ROWS), 1.0))
    if len(train.x) > ROWS:
        prior = value_and_gradient(model, theta, train.part(slice(0), 1.0))
        for first in range(ROWS, len(train.x), ROWS):
            part = value_and_gradient(model, theta, train.part(slice(first, first + ROWS), 1.0))
            value = value + part[0] - prior[0]
            gradient = gradient + part[1] - prior[1]
    return value, gradient


def mode(model: LogJoint, theta: Tensor, train: Batch, iterations: int) -> Tensor:
    """Point that L-BFGS reaches from θ [1, P] on the full log joint; the start if it diverges."""
    point = theta.detach().clone()
    optimizer = torch.optim.LBFGS([point], max_iter=iterations, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        value, gradient = whole_gradient(model, point, train)
        point.grad = -gradient / len(train.x)
        return -value.sum() / len(train.x)

    # type: ignore[arg-type]  # L-BFGS requires a closure that returns a tensor
    optimizer.step(loss)
    return point.detach() if torch.isfinite(point).all() else theta


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Reference point with its full-data gradient."""

    reference: Tensor  # θ̂ [K, P] or [1, P]
    slope: Tensor  # g(θ̂)
    data: Batch | None = not_checkpointed()  # all rows, if the point moves


class GradientEstimates(BaseModel):
    """Minibatch estimates of the gradient of the log joint, [K, P], unbiased in each case.

        plain            ĝ(θ)
        control_variate  g(θ̂) + ĝ(θ) − ĝ(θ̂),  θ̂ one point, found by ``centre_steps``
                         iterations of L-BFGS from a prior draw
        svrg             as control_variate, with θ̂ the state of each chain itself at its
                         last step that was a multiple of ``refresh_every``

    ĝ is the estimate from the minibatch and g the gradient for all rows, prior included.
    The variance equals Var(ĝ(θ) − ĝ(θ̂)), which is proportional to ‖θ − θ̂‖² and at large distances
    exceeds the variance of the plain estimate.  A step costs two minibatch gradients; svrg adds one
    gradient of all rows every ``refresh_every`` steps.

    Source: Baker et al. (2019), eq. (4); Dubey et al. (2016), Algorithm 2.
    """

    # plain, or with less minibatch noise control_variate at a mode, Baker et al. (2019), or svrg,
    # Dubey et al. (2016)
    gradient: Literal["plain", "control_variate", "svrg"]
    # of control_variate: L-BFGS iterations on the whole training set to find the mode, >= 1
    centre_steps: PositiveInt
    # of svrg: steps between full gradients, >= 1; with N/B steps each costs one epoch
    refresh_every: PositiveInt

    def init_reference(
        self, model: LogJoint, theta: Tensor, problem: SampleableProblem
    ) -> Reference | None:
        """Reference point and its gradient for chains that start at θ [K, P].

        If the point moves, the result also holds the data.

        Raises:
            ConfigMismatchError: a density, which has no minibatches.
        """
        if self.gradient == "plain":
            return None
        if not isinstance(problem, Supervised):
            raise ConfigMismatchError(
                f"inference.gradient={self.gradient}: a density has no minibatches; use plain"
            )
        if self.gradient == "svrg":  # the first step sets the reference to the state of the chains
            blank = torch.zeros_like(theta)
            return Reference(reference=blank, slope=blank, data=problem.train)
        centre = mode(model, theta[:1], problem.train, self.centre_steps)  # [1, P]
        return Reference(
            reference=centre, slope=whole_gradient(model, centre, problem.train)[1], data=None
        )

    def refresh_reference(
        self, at: Reference | None, model: LogJoint, theta: Tensor, t: int
    ) -> Reference | None:
        """The reference after t steps, set to the state θ [K, P] of the chains when due."""
        if at is None or at.data is None or t % self.refresh_every:
            return at
        return replace(at, reference=theta, slope=whole_gradient(model, theta, at.data)[1])

    def estimate(
        self, at: Reference | None, model: LogJoint, theta: Tensor, batch: ModelBatch
    ) -> tuple[Tensor, Tensor]:
        """Estimates of the log joint [K] (always the plain one) and of its gradient [K, P]."""
        value, gradient = value_and_gradient(model, theta, batch)
        if at is not None:
            reference_grad = log_joint_gradient(model, at.reference, batch)  # [K, P] or [1, P]
            gradient = at.slope + gradient - reference_grad
        return value, gradient


class GradientNoise(GradientEstimates):
    """Gradient estimates and, with ``noise_estimate``, a running mean V̂ of their variances.

    Each step adds (1 − B/N) (ĝ₁ − ĝ₂)²/4 from the two halves of its minibatch, for each coordinate,
    and V̂ averages over about ``noise_window`` steps.  With an odd number of rows one row is
    dropped.
    """

    noise_estimate: bool
    noise_window: PositiveInt

    def check_noise_estimate(self, problem: SampleableProblem) -> None:
        """Raise ConfigMismatchError if ``noise_estimate`` is used without minibatches."""
        if self.noise_estimate and not isinstance(problem, Supervised):
            raise ConfigMismatchError(
                "inference.noise_estimate: a density has no gradient noise; use false"
            )

    def split_gradient(
        self, control: Reference | None, model: LogJoint, theta: Tensor, batch: Batch
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log joint [K] and gradient [K, P] of a batch, and an unbiased estimate of the gradient's
        variance [K, P]."""
        half = len(batch.x) // 2
        if half == 0:
            raise ConfigMismatchError(
                "inference.noise_estimate: a batch of 1 row cannot be split; raise "
                "dataset.batch_size or use false"
            )
        n = batch.scale * len(batch.x)
        first, second = (
            self.estimate(control, model, theta, batch.part(rows, n / half))
            for rows in (slice(half), slice(half, 2 * half))
        )
        # rows are drawn without replacement
        variance = (1 - 2 * half / n) * (first[1] - second[1]).square() / 4
        return (first[0] + second[0]) / 2, (first[1] + second[1]) / 2, variance

    def estimate_with_noise(
        self,
        control: Reference | None,
        model: LogJoint,
        theta: Tensor,
        batch: ModelBatch,
        V: Tensor,
        t: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Log joint [K], gradient [K, P] and V̂ [K, P] at the step after t steps."""
        if not self.noise_estimate:
            return *self.estimate(control, model, theta, batch), V
        assert isinstance(batch, Batch)  # guaranteed by ``check_noise_estimate``
        value, gradient, variance = self.split_gradient(control, model, theta, batch)
        return value, gradient, V + (variance - V) / min(t + 1, self.noise_window)


class GradientSteps(GradientDynamics[C], Generic[C]):
    """Base of samplers with steps along the gradient at the current state."""

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
        """The state before the first step, with the chains at their starts."""

    @abstractmethod
    def move(
        self, state: C, gradient: Tensor, eps: float, batch: ModelBatch, rng: Rng
    ) -> tuple[C, Info]:
        """The state after a step of size ε with the gradient [C, P], and further Info."""


@dataclass(kw_only=True)
class ControlledChains(Chains):
    control: Reference | None  # subtracted from gradient estimates; None without a control variate


S = TypeVar("S", bound=ControlledChains)


class ControlledSteps(GradientSteps[S], GradientEstimates, Generic[S]):
    """Base of samplers that can subtract a control variate from the gradient."""

    def start_chains(
        self, model: LogJoint, problem: SampleableProblem, rng: Rng, gradient: bool = True
    ) -> Chains:
        chains = super().start_chains(model, problem, rng, gradient)
        control = self.init_reference(model, chains.theta, problem)
        return ControlledChains(**vars(chains), control=control)

    def find_gradient(self, state: S, batch: ModelBatch) -> tuple[S, Tensor, Tensor]:
        model = state.model
        theta = state.theta
        control = self.refresh_reference(state.control, model, theta, state.t)
        return replace(state, control=control), *self.estimate(control, model, theta, batch)
