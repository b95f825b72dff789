"""Capabilities of models with closed-form coordinate ascent of their bound.

Each factor in turn is set to its optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from components.contracts.capabilities.densities import LogJoint
from components.contracts.capabilities.modules import Shown

# parameters of the factors of q by name, each [S, …] for S independent starts
Factors = dict[str, Tensor]


class ClosedFormAscent(Protocol[Shown]):
    """A family q(θ, z) = Π_i q_i(θ_i) Π_n q_n(z_n) and its cycle of closed-form updates.

    The cycle increases the objective.  ``Factors`` hold the stored part of q, its factors of θ.
    Factors of the rows' latent variables (z_n: a cluster, a truncated normal) are computed at their
    optimum given these where they are used, so that memory does not grow with the number of rows.
    All S starts are updated in parallel; they differ only in ``start``.
    """

    def start(self, batch: Shown, n: int, generator: torch.Generator) -> Factors: ...  # S = n

    # updates every factor once, in a fixed order, to its optimum given the others; the objective of
    # no start decreases
    def cycle(self, factors: Factors, batch: Shown) -> Factors: ...

    # E_q[log p(x, z, θ) − log q(z, θ)] [S] in nats, with every constant: a lower bound on log
    # p(x).  For point masses it is the log posterior (or likelihood) at their location
    def objective(self, factors: Factors, batch: Shown) -> Tensor: ...

    # θ ~ q of the first start, in the flat coordinates of the model's log joint [n, P]; for point
    # masses n copies of the point
    def draw(self, factors: Factors, n: int, generator: torch.Generator) -> Tensor: ...


@runtime_checkable
class CoordinateAscent(LogJoint, Protocol[Shown]):
    """A log joint with a mean-field family that coordinate ascent (``cavi``) fits."""

    def mean_field(self) -> ClosedFormAscent[Shown]: ...


@runtime_checkable
class StructuredAscent(CoordinateAscent[Shown], Protocol[Shown]):
    """A log joint with families that keep the dependence of some parameters.

    q_I(θ_I) Π_{i ∉ I} q_i(θ_i), I the parameters named in ``joint``; ["all"]: a single factor.  A
    name that such a family does not support raises ConfigMismatchError.
    """

    def structured_field(self, joint: Sequence[str]) -> ClosedFormAscent[Shown]: ...


@runtime_checkable
class PointMasses(LogJoint, Protocol[Shown]):
    """A log joint with expectation maximisation for θ.

    This is coordinate ascent where every q_i(θ_i) is a point mass.
    """

    # of the log posterior, or of the log likelihood if ``penalised`` is False
    def point_masses(self, penalised: bool) -> ClosedFormAscent[Shown]: ...


@runtime_checkable
class RowsAscent(ClosedFormAscent[Shown], Protocol[Shown]):
    """The ascent of a model of unlabelled rows, with predictions of new rows."""

    # log E_q[p(x_b | θ)] [S, B]
    def log_predictive(self, factors: Factors, batch: Shown) -> Tensor: ...


@runtime_checkable
class ClusterAscent(RowsAscent[Shown], Protocol[Shown]):
    """The ascent of a mixture: K clusters, some of them possibly empty."""

    # q(z_b = k) [S, B, K]
    def responsibilities(self, factors: Factors, batch: Shown) -> Tensor: ...


@runtime_checkable
class DensityOfFactors(Protocol):
    """A family q(θ) with a known density in the flat coordinates of the model's log joint.

    Figures draw its contours.
    """

    # log q(θ) of the first start, θ [n, P] -> [n]
    def log_density(self, factors: Factors, theta: Tensor) -> Tensor: ...


@runtime_checkable
class Clustered(Protocol[Shown]):
    """A log joint of rows in K clusters, in an order that does not depend on the cluster labels."""

    # mean of p(z_b = k | θ, x_b) over θ [S, P]: [B, K]
    def clusters(self, theta: Tensor, batch: Shown) -> Tensor: ...
