"""Capabilities of state-space models: x_0 ~ init, x_t ~ transition(x_{t−1}), y_t ~
observation(x_t)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from components.contracts.capabilities.modules import ModuleProtocol
from components.contracts.sequences import LinearGaussianSystem, Series
from components.maths.compiled.elevation_map import ElevationMapVersion


@runtime_checkable
class StateSpace(Protocol):
    """x_0 ~ init, x_t ~ transition(x_{t−1}), y_t ~ observation(x_t), with leading dimensions [R,
    N].

    Observations passed to its methods are never missing."""

    def init(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor: ...  # [R, N, dx]

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor: ...  # [R, N, dx]

    # y [R, dy], x [R, N, dx] -> [R, N]
    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor: ...

    def observation_mean(self, x: Tensor, t: int) -> Tensor: ...  # E[y_t | x_t] [R, N, dy]


@runtime_checkable
class TransitionDensity(StateSpace, Protocol):
    """A transition with a density, required by smoothers and guided proposals."""

    # log f_t(x | x_prev) [R, N]
    def log_transition(self, x: Tensor, x_prev: Tensor, t: int) -> Tensor: ...


@runtime_checkable
class TransitionMean(StateSpace, Protocol):
    """A transition with a known mean, which auxiliary filters use for look-ahead."""

    def transition_mean(self, x: Tensor, t: int) -> Tensor: ...  # E[x_t | x_{t−1} = x] [R, N, dx]


@runtime_checkable
class OptimalProposal(Protocol):
    """The locally optimal proposal p(x_t | x_{t−1}, y_t), and the predictive likelihood as weight
    of its draws."""

    # [R, N, dx]
    def propose(self, y: Tensor, x_prev: Tensor, t: int, generator: torch.Generator) -> Tensor: ...

    # log p(x | x_prev, y) [R, N]
    def log_proposal(self, x: Tensor, y: Tensor, x_prev: Tensor, t: int) -> Tensor: ...

    # log p(y_t | x_{t−1}) [R, N]
    def log_predictive(self, y: Tensor, x_prev: Tensor, t: int) -> Tensor: ...


@runtime_checkable
class BoundedObservation(Protocol):
    """A bounded observation density, required by stabilised auxiliary filters."""

    def log_observation_bound(self, t: int) -> float: ...  # log sup_{y, x} g_t(y | x)


@runtime_checkable
class GaussianNoise(StateSpace, Protocol, metaclass=ModuleProtocol):
    """y_t = h(x_t) + N(0, Σ), h ``observation_mean``: observation noise that heavy-tailed or
    weighted noise of the same scale can replace."""

    @property
    # [dy, dy], or [R, dy, dy] where each replicate has its own parameters
    def Sigma(self) -> Tensor: ...


class GaussianSystem(Protocol):
    """x_0 ~ N(m_0, P_0), with Gaussian noise N(0, Q) of the states and N(0, Σ) of the
    observations."""

    @property
    def m0(self) -> Tensor: ...  # [dx]

    @property
    def P0(self) -> Tensor: ...  # [dx, dx]

    @property
    # [dx, dx], or [R, dx, dx] where each replicate has its own parameters
    def Q(self) -> Tensor: ...

    @property
    def Sigma(self) -> Tensor: ...  # [dy, dy], or [R, dy, dy]


@runtime_checkable
class AdditiveGaussian(GaussianSystem, Protocol, metaclass=ModuleProtocol):
    """x_t = f_t(x_{t−1}) + N(0, Q), y_t = h_t(x_t) + N(0, Σ), x_0 ~ N(m_0, P_0), f and h
    differentiable in x.  Gaussian filters linearise f and h or evaluate them at sigma points."""

    def transition_mean(self, x: Tensor, t: int) -> Tensor: ...  # f_t(x) [R, N, dx]

    def observation_mean(self, x: Tensor, t: int) -> Tensor: ...  # h_t(x) [R, N, dy]


@runtime_checkable
class Parameterised(Protocol, metaclass=ModuleProtocol):
    """A state-space model with unknown parameters, which evaluates K sets in parallel.

    θ [K, P] is unconstrained; the prior density of θ includes the Jacobian.
    """

    @property
    def parameter_names(self) -> Sequence[str]: ...  # of the P parameters

    def draw_prior(self, n: int, generator: torch.Generator) -> Tensor: ...  # θ [n, P]

    def log_prior(self, theta: Tensor) -> Tensor: ...  # [K, P] -> [K]

    # to the constrained parameters [K, P] -> [K, P]
    def constrain(self, theta: Tensor) -> Tensor: ...

    # the model with parameters θ_k in its k-th replicate [K, P]
    def at(self, theta: Tensor) -> StateSpace: ...


@runtime_checkable
class CategoricalSeries(Protocol, metaclass=ModuleProtocol):
    """A series of class numbers 0 … C − 1, one at a time."""

    @property
    def n_classes(self) -> int: ...  # C


@runtime_checkable
class KnownParameters(Protocol, metaclass=ModuleProtocol):
    """A data-generating system with known parameter values, which may be hidden from models."""

    @property
    def parameters(self) -> Mapping[str, float]: ...  # by parameter name, as used by the models


@runtime_checkable
class PowerIntegral(StateSpace, Protocol):
    """An observation density with a known integral of its power over y.

    Required by the β-divergence.
    """

    # log ∫ g(y|x)^power dy, [R, N] or []
    def log_power_integral(self, x: Tensor, t: int, power: float) -> Tensor: ...


@runtime_checkable
class LinearGaussian(GaussianSystem, Protocol, metaclass=ModuleProtocol):
    """x_t = A x_{t−1} + N(0, Q), y_t = H x_t + N(0, Σ), x_0 ~ N(m_0, P_0): the model of a Kalman
    filter."""

    @property
    def A(self) -> Tensor: ...  # [dx, dx]

    @property
    def H(self) -> Tensor: ...  # [dy, dx]


@dataclass(frozen=True)
class SplitNormal(LinearGaussianSystem):
    """Linear Gaussian dynamics, y_t = H x_t + ε_t, each ε_tj with density 1{ε ≤ 0} N(0, s_−²) + 1{ε
    > 0} N(0, s_+²); Σ = I."""

    below: float  # s_−
    above: float  # s_+


@dataclass(frozen=True)
class TerrainAided:
    """x_t = A x_{t−1} + N(0, Q) with x = (east, north, height, their velocities), y_t = (height
    above ground, distance from the point of take-off) + N(0, s² I), x_0 ~ N(m_0, P_0); Q and P_0
    are diagonal."""

    delta: float  # Δτ, time between observations
    dem: ElevationMapVersion  # name of the elevation map
    takeoff: tuple[float, float]  # east, north
    motion_sd: Tensor  # √diag Q [6]
    noise_sd: float  # s
    m0: Tensor  # [6]
    prior_sd: Tensor  # √diag P_0 [6]


@dataclass(frozen=True)
class AutoregressiveVolatility:
    """x_t = μ + φ(x_{t−1} − μ) + N(0, σ²), y_t = exp(x_t / 2) N(0, 1), x_0 ~ N(μ, σ²/(1 − φ²))."""

    mu: float
    phi: float
    sigma: float

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters by the names of the model."""
        return vars(self)


@runtime_checkable
class SeriesConditionals(Protocol, metaclass=ModuleProtocol):
    """Full conditionals of a whole series, for a Gibbs sampler.

    The sampler alternates between the hidden states and P parameters, for C chains of each of R
    replicates in parallel.  States are x_0 … x_T: the initial state and the states of the T
    observations.
    """

    @property
    def parameter_names(self) -> Sequence[str]: ...  # of the P parameters

    @property
    def state_dim(self) -> int: ...  # dx

    # θ [R, C, P]
    def start(self, series: Series, chains: int, generator: torch.Generator) -> Tensor: ...

    # x_0:T ~ p(· | θ, y) [R, C, T + 1, dx]
    def draw_states(self, series: Series, theta: Tensor, generator: torch.Generator) -> Tensor: ...

    def draw_parameters(
        self, series: Series, states: Tensor, theta: Tensor, generator: torch.Generator
    ) -> Tensor: ...  # θ' ~ p(· | x_0:T, y), block by block from θ on [R, C, P]
