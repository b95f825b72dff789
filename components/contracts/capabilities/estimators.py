"""Capabilities of models that are fitted in closed form or in a single call."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from components.contracts.capabilities.modules import ModuleProtocol
from components.contracts.predictive import Predictive
from components.contracts.problems import Batch, Rows
from components.maths.conjugate_regression import Coefficients

Fitted = dict[str, Tensor]  # a fit, by names of its tensors


@runtime_checkable
class Conjugate(Protocol, metaclass=ModuleProtocol):
    """A linear regression with a posterior in closed form.

    y ~ N(Xβ, σ² I) with β | σ² ~ N(0, σ² diag(λ)⁻¹).
    """

    @property
    def penalty(self) -> Tensor: ...  # λ [D]

    @property
    def intercept(self) -> bool: ...  # True if the first column of X is all ones

    @property
    def noise(self) -> float | tuple[float, float]: ...  # σ², or (a, b) of its InvGamma prior

    @property
    def names(self) -> list[str]: ...

    # (β, log σ²) or β, [n, P]
    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor: ...

    def constrain(self, theta: Tensor) -> Tensor: ...  # (β, σ²) or β, [K, P']

    def coefficients(self, batch: Batch) -> Coefficients: ...  # β | σ², y

    def log_evidence(self, batch: Batch) -> Tensor: ...  # log p(y | X) []

    def predictive(self, theta: Tensor, x: Tensor) -> Predictive: ...


@runtime_checkable
class BetaPosterior(Protocol, metaclass=ModuleProtocol):
    """Coin tosses with a beta prior on the probability of heads, hence a beta posterior."""

    @property
    def prior(self) -> tuple[float, float]: ...  # (a, b)

    def counts(self, rows: Rows) -> tuple[int, int]: ...  # numbers of heads and tails

    # of single later tosses [B]
    def log_predictive(self, counts: tuple[int, int], rows: Rows) -> Tensor: ...


@runtime_checkable
class LinearSmoother(Protocol, metaclass=ModuleProtocol):
    """A regression y ~ N(f(x), σ²), σ² known, with a Gaussian posterior of f.

    The posterior mean is linear in y.
    """

    @property
    def known_noise(self) -> float: ...  # σ²

    def smoother(self, x: Tensor) -> Tensor: ...  # S [N, N] at x [N, D], f | y ~ N(S y, σ² S)

    # mean and variance [M] of f at ``at`` [M, D] given y [N]
    def condition(self, x: Tensor, y: Tensor, at: Tensor) -> tuple[Tensor, Tensor]: ...

    # exponent of n in the rate at which the posterior contracts to such an f₀
    def exponent(self, smoothness: float) -> float: ...


@runtime_checkable
class Estimator(Protocol):
    """A model that is fitted in a single call; the fit is a dict of tensors, so that it can be
    saved."""

    def fit(self, batch: Batch, seed: int) -> Fitted: ...

    def predict_fitted(self, fitted: Fitted, x: Tensor) -> Predictive: ...


@runtime_checkable
class Generative(Estimator, Protocol):
    """An estimator that also models x: p(y|x) ∝ p(y) Π_i p(x_i|y), C classes."""

    def log_class(self, fitted: Fitted) -> Tensor: ...  # log p(y) [C]

    # log p(x_i|y) [B, C, D]
    def log_features(self, fitted: Fitted, x: Tensor) -> Tensor: ...

    # log p(x|y) [B, C]
    def log_conditional(self, fitted: Fitted, x: Tensor) -> Tensor: ...
