"""Capabilities of models with their own variational posterior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from components.contracts.capabilities.modules import ModuleProtocol, Shown, Trainable
from components.contracts.predictive import Predictive
from components.contracts.problems import Batch


@runtime_checkable
class Elbo(Trainable, Protocol):
    """A variational model: its bound as a function of explicit noise, and its predictive
    distribution."""

    # noise that ``elbo`` reads
    def draw_noise(self, batch: Batch, n_samples: int, generator: torch.Generator) -> Any: ...

    # "elbo", "log_likelihood", "kl": all []
    def elbo(self, batch: Batch, noise: Any) -> dict[str, Tensor]: ...

    # a mixture of n
    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive: ...


class VariationalLayer(Protocol):
    """q(v) = N(m, L Lᵀ) of one layer's whitened inducing outputs."""

    q_mean: nn.Parameter  # m
    q_tril: nn.Parameter  # L


@runtime_checkable
class VariationalLayers(Protocol):
    """Layers with a q(v) for natural-gradient updates, by name, bottom to top."""

    def variational_layers(self) -> Mapping[str, VariationalLayer]: ...


@runtime_checkable
class GivenFunction(Protocol):
    """A posterior over functions f, p(y | f) of single labels (for leave-one-out estimates), and
    draws of f from its prior."""

    # n draws of f(x_b), by row
    def predict_f(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive: ...

    # p(y | f) at one prior draw f, jointly at all rows and tasks: S = 1
    def sample_prior_f(self, x: Tensor, generator: torch.Generator) -> Predictive: ...


@runtime_checkable
class NoiseParameters(Protocol):
    """Parameters of the observation noise, held fixed during ``noise_warmup``."""

    def noise_parameters(self) -> Iterable[nn.Parameter]: ...


@runtime_checkable
class Hyperparameters(Protocol):
    """Unconstrained parameters that are redrawn at each restart."""

    def hyperparameters(self) -> Iterable[nn.Parameter]: ...


@runtime_checkable
class ArdWeights(Protocol, metaclass=ModuleProtocol):
    """Weights of the top layer on its processes, as in a Hinton diagram."""

    @property
    def process_names(self) -> list[str]: ...

    def ard_weights(self) -> Tensor: ...  # ω = 1/ℓ² by task and process [T, D]


@runtime_checkable
class InducingInputs(ArdWeights, Protocol, metaclass=ModuleProtocol):
    """Inducing inputs of each layer, current and initial."""

    @property
    def n_levels(self) -> int: ...

    def inducing_inputs(self) -> Mapping[str, Tensor]: ...  # [G, M, D] each

    def initial_inducing_inputs(self) -> Mapping[str, Tensor]: ...


@runtime_checkable
class Pathwise(Trainable, Protocol[Shown]):
    """A bound that is differentiable in explicit noise, row by row."""

    # [S, B, D]
    def draw_noise(self, batch: Shown, n_samples: int, generator: torch.Generator) -> Tensor: ...

    # [S, B], without the terms in ``kl``
    def elbo_rows(self, batch: Shown, noise: Tensor) -> Tensor: ...

    def kl(self) -> Tensor: ...  # of the parts shared by all rows, []; 0 if there are none


@runtime_checkable
class NormalNoise(Pathwise[Shown], Protocol[Shown], metaclass=ModuleProtocol):
    """Noise with rows N(0, I_D), each independent or all one draw expanded.

    Powers of the noise have known means.
    """

    @property
    def noise_dim(self) -> int: ...  # D


@runtime_checkable
class LocationScale(NormalNoise[Shown], Protocol[Shown]):
    """Latent variables θ = m + L ε; the noise enters the bound only through θ.

    Terms quadratic in θ have a known mean.
    """

    # m [B, D], L [B, D, D]; B = 1 where rows share them
    def location_scale(self, batch: Shown) -> tuple[Tensor, Tensor]: ...

    # the part of ``elbo_rows`` that depends on θ [S, B, D]: [S, B]
    def rows_at(self, batch: Shown, theta: Tensor) -> Tensor: ...


@runtime_checkable
class GlobalLatent(LocationScale[Shown], Protocol[Shown], metaclass=ModuleProtocol):
    """One θ for all N rows of a data set."""

    @property
    def n_data(self) -> int: ...  # N; 0: there are no rows


@runtime_checkable
class RowContext(NormalNoise[Shown], Protocol[Shown], metaclass=ModuleProtocol):
    """Normal noise, and a context for each row from which a coefficient can be learned.

    The context distinguishes rows: their inputs, and their labels if there are any.
    """

    @property
    def context_dim(self) -> int: ...  # C; 0 where there are no rows

    def context(self, batch: Shown) -> Tensor: ...  # of each row, no gradient [B, C]


@runtime_checkable
class PathDerivative(Pathwise[Shown], Protocol[Shown]):
    """A bound that can hold q fixed in log q, so that gradients pass through the draws only."""

    # log p(x, z) − log q̄(z|x) [S, B], q̄ without gradient
    def path_rows(self, batch: Shown, noise: Tensor) -> Tensor: ...


@runtime_checkable
class FactoredGuide(Trainable, Protocol[Shown]):
    """q(θ) = Π_i q_i(θ_i) of one θ for all rows.

    The i-th entry of every parameter [P] affects q_i only.
    """

    # θ ~ q, no gradient [S, P]
    def draw_theta(self, n: int, generator: torch.Generator) -> Tensor: ...

    def log_q_each(self, theta: Tensor) -> Tensor: ...  # log q_i(θ_si) [S, P]

    # log p(x, θ) of the whole data set [S], and for each i the sum of its separable terms that
    # contain θ_i [S, P]
    def log_joint_each(self, batch: Shown, theta: Tensor) -> tuple[Tensor, Tensor]: ...
