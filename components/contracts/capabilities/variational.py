"""Capabilities of models with a variational posterior of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from components.contracts.capabilities.modules import ModuleProtocol, Trainable
from components.contracts.predictive import Predictive
from components.contracts.problems import Batch

Shown = TypeVar("Shown", contravariant=True)  # the batch that a model reads: Batch, Rows


@runtime_checkable
class Elbo(Trainable, Protocol):
    """A variational model: its bound as a function of explicit noise, and its predictive
    distribution."""

    def draw_noise(
        self, batch: Batch, n_samples: int, generator: torch.Generator
    ) -> Any: ...  # noise that ``elbo`` reads

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
    """Layers with a q(v) that natural gradients can follow, by name, bottom to top."""

    def layers(self) -> Mapping[str, VariationalLayer]: ...


@runtime_checkable
class GivenFunction(Protocol):
    """A posterior over functions f, and p(y | f) of single labels: what leaving one of them out
    asks for; and draws of f from its prior."""

    def given_function(
        self, x: Tensor, n: int, generator: torch.Generator
    ) -> Predictive: ...  # n draws of f(x_b), by row

    # p(y | f) at one draw f of the prior, jointly at all rows and tasks: S = 1
    def sample_function(self, x: Tensor, generator: torch.Generator) -> Predictive: ...


@runtime_checkable
class NoiseParameters(Protocol):
    """Parameters of the observation noise, which ``noise_warmup`` holds."""

    def noise_parameters(self) -> Iterable[nn.Parameter]: ...


@runtime_checkable
class Hyperparameters(Protocol):
    """Parameters, on their unbounded scale, that restarts draw anew."""

    def hyperparameters(self) -> Iterable[nn.Parameter]: ...


@runtime_checkable
class ArdWeights(Protocol, metaclass=ModuleProtocol):
    """Weights of the top layer on its processes, as in a Hinton diagram."""

    @property
    def process_names(self) -> list[str]: ...

    def ard_weights(self) -> Tensor: ...  # ω = 1/ℓ² by task and process [T, D]


@runtime_checkable
class InducingInputs(ArdWeights, Protocol, metaclass=ModuleProtocol):
    """Inducing inputs of each layer, now and as they were initialised."""

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

    def kl(self) -> Tensor: ...  # of the parts that all rows share; 0 where they share nothing, []


@runtime_checkable
class NormalNoise(Pathwise[Shown], Protocol[Shown], metaclass=ModuleProtocol):
    """Noise with rows N(0, I_D), each independent or all one draw expanded.

    Powers of the noise have known means.
    """

    @property
    def noise_dim(self) -> int: ...  # D


@runtime_checkable
class LocationScale(NormalNoise[Shown], Protocol[Shown]):
    """Latent variables θ = m + L ε, the only path of the noise into the bound.

    Terms quadratic in θ have a known mean.
    """

    def location_scale(
        self, batch: Shown
    ) -> tuple[Tensor, Tensor]: ...  # m [B, D], L [B, D, D]; B = 1 where rows share them

    def rows_at(
        self, batch: Shown, theta: Tensor
    ) -> Tensor: ...  # the part of ``elbo_rows`` that depends on θ [S, B, D]: [S, B]


@runtime_checkable
class GlobalLatent(LocationScale[Shown], Protocol[Shown], metaclass=ModuleProtocol):
    """One θ for all rows of a data set, which has so many."""

    @property
    def n_data(self) -> int: ...  # N; 0 where there are no rows


@runtime_checkable
class RowContext(NormalNoise[Shown], Protocol[Shown], metaclass=ModuleProtocol):
    """Normal noise, and a context of each row that its coefficient can be learnt from.

    The context distinguishes rows: their inputs, and their labels if there are any.
    """

    @property
    def context_dim(self) -> int: ...  # C; 0 where there are no rows

    def context(self, batch: Shown) -> Tensor: ...  # of each row, no gradient [B, C]


@runtime_checkable
class PathDerivative(Pathwise[Shown], Protocol[Shown]):
    """A bound that can hold q fixed in log q, so that it moves with the draws only."""

    def path_rows(
        self, batch: Shown, noise: Tensor
    ) -> Tensor: ...  # log p(x, z) − log q̄(z|x) [S, B], q̄ without gradient


@runtime_checkable
class FactoredGuide(Trainable, Protocol[Shown]):
    """q(θ) = Π_i q_i(θ_i) of one θ for all rows.

    The i-th entry of every parameter [P] belongs to q_i only.
    """

    # θ ~ q, no gradient [S, P]
    def draw_theta(self, n: int, generator: torch.Generator) -> Tensor: ...

    def log_q_each(self, theta: Tensor) -> Tensor: ...  # log q_i(θ_si) [S, P]

    # log p(x, θ) of the whole data set [S], and the sum of its terms with θ_i, as far as they are
    # separable [S, P]
    def log_joint_each(self, batch: Shown, theta: Tensor) -> tuple[Tensor, Tensor]: ...
