"""Capabilities of models that define a log density over flat parameters θ."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from components.contracts.capabilities.modules import ModuleProtocol
from components.contracts.predictive import Predictive
from components.contracts.problems import Batch, Rows
from components.contracts.sequences import Series

DataBatch = Batch | Rows | Series


@runtime_checkable
class LogJoint(Protocol, metaclass=ModuleProtocol):
    """A target log-density over flat, unconstrained parameters θ [K, P].

    It evaluates K chains or particles in parallel.  For constrained parameters (a scale, a
    simplex), ``log_prior`` includes the log-Jacobian of ``constrain``.  For a density, the batch is
    None and the log-likelihood [K, 0].  For a sequence, the batch is the whole series and the
    log-likelihood [K, 1].
    """

    @property
    def dim(self) -> int: ...  # P

    @property
    # of the P' parameters that ``constrain`` returns; empty if unnamed
    def names(self) -> list[str]: ...

    def constrain(self, theta: Tensor) -> Tensor: ...  # [K, P] -> [K, P']

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor: ...  # [n, P]

    # [K, B], unscaled
    def log_likelihood(self, theta: Tensor, batch: DataBatch) -> Tensor: ...

    def log_prior(self, theta: Tensor) -> Tensor: ...  # [K]


@runtime_checkable
class ThetaPredictive(Protocol):
    """Predictive of K parameters, required of every log joint of a supervised problem."""

    # θ [K, P], x [B, D]; a mixture of K
    def predictive(self, theta: Tensor, x: Tensor) -> Predictive: ...


class PredictiveLogJoint(LogJoint, ThetaPredictive, Protocol):
    """A log joint of a supervised problem."""


@runtime_checkable
class GaussianPrior(Protocol):
    """A log joint with an optional prior N(0, diag s²) over θ.

    KL divergences from this prior have a closed form.
    """

    def gaussian_prior(self) -> Tensor | None: ...  # s [P]; None if another prior is configured


@runtime_checkable
class WarmStart(Protocol):
    """Initial states of chains for models in which prior draws are unsuitable."""

    def sample_start(self, n: int, generator: torch.Generator) -> Tensor: ...  # [n, P]


@runtime_checkable
class TrainingStart(Protocol):
    """Initial parameters for gradient-based training, if they differ from a sampler's start, as for
    networks."""

    def initial(self, n: int, generator: torch.Generator) -> Tensor: ...  # [n, P]


@runtime_checkable
class ClosedFormScore(Protocol):
    """The log joint and its gradient in closed form, without a backward pass.

    If ``value`` is False, the first result is not read and may be anything."""

    # [K], [K, P]
    def score(self, theta: Tensor, batch: Batch, value: bool) -> tuple[Tensor, Tensor]: ...


@runtime_checkable
class Collapsed(LogJoint, ClosedFormScore, Protocol):
    """The marginal log joint of some parameters, with the others integrated out.

    log p(θ₋, y) = log ∫ p(θ, y) dw, θ = (θ₋, w).  It covers the whole data, with log-likelihood [K,
    1], because rows are dependent once w is integrated out.
    """

    def rest(self, theta: Tensor) -> Tensor: ...  # θ [K, P] -> θ₋ [K, P']

    def complete(
        self, rest: Tensor, batch: DataBatch, generator: torch.Generator
    ) -> Tensor: ...  # θ [K, P], w drawn from p(w | θ₋, y)


@runtime_checkable
class Collapsible(Protocol):
    """A log joint with some parameters that can be integrated out in closed form."""

    # raises ConfigMismatchError where the data do not allow it
    def integrate_out(self) -> Collapsed: ...


@runtime_checkable
class OwnInputs(Protocol, metaclass=ModuleProtocol):
    """A log joint that accepts separate inputs for each of K parameters, x [K, B, D]."""

    @property
    def own_inputs(self) -> bool: ...


@runtime_checkable
class Conditionals(LogJoint, Protocol, metaclass=ModuleProtocol):
    """A log joint with full conditionals of blocks of the parameters.

    A Gibbs sampler draws the blocks in turn.
    """

    @property
    def blocks(self) -> list[str]: ...

    def draw_block(
        self, block: str, theta: Tensor, batch: Batch | Rows | None, generator: torch.Generator
    ) -> Tensor: ...  # [K, P]
