"""Capabilities: what a built model can be asked, and what an inference method therefore ``needs``."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor


@runtime_checkable
class LogJoint(Protocol):
    """A target log-density over flat, unconstrained parameters θ [K, P]: K chains or particles at once.

    Where parameters are constrained (a scale, a simplex), ``log_prior`` holds the log-Jacobian of ``constrain``.
    A supervised model also offers ``predict(theta [K, P], x [B, D])``, the predictive of K parameters.  Where chains
    should not start at draws from the prior, ``sample_start(n, generator)`` [n, P] says where."""

    dim: int  # P
    names: list[str]  # of the P' parameters that ``constrain`` gives; empty: they have no names

    def constrain(self, theta: Tensor) -> Tensor: ...  # [K, P] -> [K, P']

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor: ...  # [n, P]

    def log_likelihood(self, theta: Tensor, batch: Any) -> Tensor: ...  # [K, B], unscaled

    def log_prior(self, theta: Tensor) -> Tensor: ...  # [K]


@runtime_checkable
class Conditionals(Protocol):
    """Full conditionals of blocks of the parameters, which a Gibbs sampler draws in turn; θ [K, P] as in LogJoint."""

    blocks: list[str]

    def draw_block(self, block: str, theta: Tensor, batch: Any, generator: torch.Generator) -> Tensor: ...  # [K, P]


@runtime_checkable
class Conjugate(Protocol):
    """A linear regression y ~ N(Xβ, σ² I) with β | σ² ~ N(0, σ² diag(λ)⁻¹), whose posterior is known in closed form."""

    penalty: Tensor  # λ [D]
    intercept: bool  # whether the first column of X is of ones
    noise: float | tuple[float, float]  # σ², or (a, b) of its InvGamma prior
    names: list[str]

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor: ...  # (β, log σ²) or β, [n, P]

    def coefficients(self, batch: Any) -> Any: ...  # components.maths.conjugate_regression.Coefficients

    def log_evidence(self, batch: Any) -> Tensor: ...  # log p(y | X) []

    def predict(self, theta: Tensor, x: Tensor) -> Any: ...  # a predictive


@runtime_checkable
class Elbo(Protocol):
    """A variational model: its bound as a function of explicit noise, and its predictive distribution."""

    def draw_noise(self, batch: Any, n_samples: int, generator: torch.Generator) -> Any: ...

    def elbo(self, batch: Any, noise: Any) -> dict[str, Tensor]: ...  # "elbo", "log_likelihood", "kl": all []

    def predict(self, x: Tensor, n_samples: int, generator: torch.Generator) -> Any: ...  # a predictive


@runtime_checkable
class Network(Protocol):
    """A feed-forward ``nn.Module`` x [B, D] -> f [B, T, C] whose parameters have a prior.

    Dropout acts only where a generator is given: ``forward`` alone is deterministic and draws on no global state."""

    def forward(self, x: Tensor, generator: torch.Generator | None = None, passes: int | None = None) -> Tensor: ...

    def log_prob(self, f: Tensor, batch: Any) -> Tensor: ...  # f [..., B, T, C] -> [..., B], missing labels count zero

    def penalty(self) -> Tensor: ...  # −log prior of the module's own parameters up to a constant, []

    def predictive(self, f: Tensor) -> Any: ...  # f [S, B, T, C] -> a predictive


@runtime_checkable
class WeightSpace(Protocol):
    """A network seen through its flat weights θ [P], which have independent zero-mean Gaussian priors."""

    theta: Tensor  # [P]
    prior_std: Tensor  # [P]

    def hyperprior(self) -> Tensor: ...  # log prior of the parameters other than θ, []

    def layers(self, theta: Tensor) -> list[tuple[Tensor, Tensor]]: ...  # [..., P] -> (W [..., out, in], b [..., out])

    def propagate(self, x: Tensor, affine: Any) -> Tensor: ...  # affine(l, h) stands for h W_lᵀ + b_l

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor: ...  # [K, P], [B, D] -> f [K, B, T, C]


@runtime_checkable
class Estimator(Protocol):
    """An ``nn.Module`` that fits itself in one go; what it learnt is a dict of tensors, so that it can be kept."""

    def fit(self, batch: Any, seed: int) -> dict[str, Tensor]: ...

    def predict(self, fitted: dict[str, Tensor], x: Tensor) -> Any: ...  # a predictive


@runtime_checkable
class Generative(Protocol):
    """An estimator that models x too: p(y|x) ∝ p(y) Π_i p(x_i|y), C classes."""

    def fit(self, batch: Any, seed: int) -> dict[str, Tensor]: ...

    def log_class(self, fitted: dict[str, Tensor]) -> Tensor: ...  # log p(y) [C]

    def log_features(self, fitted: dict[str, Tensor], x: Tensor) -> Tensor: ...  # log p(x_i|y) [B, C, D]

    def log_conditional(self, fitted: dict[str, Tensor], x: Tensor) -> Tensor: ...  # log p(x|y) [B, C]

    def predict(self, fitted: dict[str, Tensor], x: Tensor) -> Any: ...  # a predictive


@runtime_checkable
class StateSpace(Protocol):
    """x_0 ~ init, x_t ~ transition(x_{t-1}), y_t ~ observation(x_t); all with leading dimensions [R, N]."""

    def init(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor: ...  # [R, N, dx]

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor: ...  # [R, N, dx]

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor: ...  # y [R, dy], x [R, N, dx] -> [R, N]

    def observation_mean(self, x: Tensor, t: int) -> Tensor: ...  # E[y_t | x_t] [R, N, dy]


@runtime_checkable
class PowerIntegral(Protocol):
    """An observation density whose power can be integrated over y, as the β-divergence asks."""

    def log_power_integral(self, x: Tensor, t: int, power: float) -> Tensor: ...  # log ∫ g(y|x)^power dy, [R, N] or []


@runtime_checkable
class LinearGaussian(Protocol):
    """x_t = A x_{t-1} + N(0, Q), y_t = H x_t + N(0, Σ), x_0 ~ N(m_0, P_0): what a Kalman filter needs."""

    A: Tensor
    Q: Tensor
    H: Tensor
    Sigma: Tensor
    m0: Tensor
    P0: Tensor


@runtime_checkable
class QFunction(Protocol):
    """Action values Q(s, a, b) for R replicates: a table or an approximator."""

    def q(self, s: Tensor) -> Tensor: ...  # s [R] -> [R, A, B]


CAPABILITIES = {
    "log_joint": LogJoint,
    "conditionals": Conditionals,
    "conjugate": Conjugate,
    "elbo": Elbo,
    "network": Network,
    "weight_space": WeightSpace,
    "estimator": Estimator,
    "generative": Generative,
    "state_space": StateSpace,
    "power_integral": PowerIntegral,
    "linear_gaussian": LinearGaussian,
    "q_function": QFunction,
}
