"""Capabilities of models that are a log density over flat parameters θ."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from components.contracts.predictive import Predictive
from components.contracts.problems import Batch, Rows
from components.contracts.sequences import Series


class Constrains(Protocol):
    """What flat, unconstrained parameters stand for."""

    def constrain(self, theta: Tensor) -> Tensor: ...  # [K, P] -> [K, P']


@runtime_checkable
class LogJoint(Protocol):
    """A target log-density over flat, unconstrained parameters θ [K, P]: K chains or particles at once.

    Where parameters are constrained (a scale, a simplex), ``log_prior`` holds the log-Jacobian of ``constrain``.  The batch
    of a density is None: its log-likelihood is [K, 0].  That of a sequence is the whole series, [K, 1]."""

    @property
    def dim(self) -> int: ...  # P

    @property
    def names(self) -> list[str]: ...  # of the P' parameters that ``constrain`` gives; empty: they have no names

    def constrain(self, theta: Tensor) -> Tensor: ...  # [K, P] -> [K, P']

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor: ...  # [n, P]

    def log_likelihood(self, theta: Tensor, batch: Batch | Rows | Series) -> Tensor: ...  # [K, B], unscaled

    def log_prior(self, theta: Tensor) -> Tensor: ...  # [K]


@runtime_checkable
class ThetaPredictive(Protocol):
    """What K parameters predict: asked of every log joint of a supervised problem."""

    def predictive(self, theta: Tensor, x: Tensor) -> Predictive: ...  # θ [K, P], x [B, D]; a mixture of K


@runtime_checkable
class GaussianPrior(Protocol):
    """A log joint whose prior may be N(0, diag s²) over θ, from which divergences are known in closed form."""

    def gaussian_prior(self) -> Tensor | None: ...  # s [P]; None: as configured, it is another


@runtime_checkable
class WarmStart(Protocol):
    """Where chains begin when draws from the prior are not the place."""

    def sample_start(self, n: int, generator: torch.Generator) -> Tensor: ...  # [n, P]


@runtime_checkable
class TrainingStart(Protocol):
    """Where training by gradients begins, as networks do whose training does not begin where samplers start."""

    def initial(self, n: int, generator: torch.Generator) -> Tensor: ...  # [n, P]


@runtime_checkable
class ClosedFormScore(Protocol):
    """The log joint and its gradient in closed form, which spares a backward pass.

    Without ``value`` the first of the two may be anything: it is not read."""

    def score(self, theta: Tensor, batch: Batch, value: bool) -> tuple[Tensor, Tensor]: ...  # [K], [K, P]


@runtime_checkable
class Collapsed(LogJoint, ClosedFormScore, Protocol):
    """The log joint of some of the parameters, the others integrated out: log p(θ₋, y) = log ∫ p(θ, y) dw, θ = (θ₋, w).

    It is of the whole data, whose log-likelihood is [K, 1]: w makes rows depend on each other."""

    def rest(self, theta: Tensor) -> Tensor: ...  # θ [K, P] -> θ₋ [K, P']

    def complete(
        self, rest: Tensor, batch: Batch | Rows | Series, generator: torch.Generator
    ) -> Tensor: ...  # θ [K, P], w drawn from p(w | θ₋, y)


@runtime_checkable
class Collapsible(Protocol):
    """A log joint some of whose parameters can be integrated out in closed form."""

    def integrate_out(self) -> Collapsed: ...  # raises Misfit where the data do not allow it


@runtime_checkable
class OwnInputs(Protocol):
    """A log joint whose K parameters may each be given inputs of their own, x [K, B, D]."""

    @property
    def own_inputs(self) -> bool: ...


@runtime_checkable
class Conditionals(Protocol):
    """Full conditionals of blocks of the parameters, which a Gibbs sampler draws in turn; θ [K, P] as in LogJoint."""

    @property
    def blocks(self) -> list[str]: ...

    def draw_block(
        self, block: str, theta: Tensor, batch: Batch | Rows | None, generator: torch.Generator
    ) -> Tensor: ...  # [K, P]
