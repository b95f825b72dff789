"""Capabilities of feed-forward networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from components.contracts.capabilities.modules import ModuleProtocol, Trainable
from components.contracts.predictive import Predictive, ReversedOutputs, ReversedPredictive
from components.contracts.problems import Batch

Affine = Callable[[int, Tensor], Tensor]  # (layer, h) -> h W_lᵀ + b_l
Layers = list[tuple[Tensor, Tensor]]  # (W [..., out, in], b [..., out]) of each layer


@runtime_checkable
class Network(Trainable, Protocol):
    """A feed-forward ``nn.Module`` x [B, D] -> f [B, T, C].

    Dropout acts only where a generator is given: ``forward`` without one is deterministic
    and uses no global random state.
    """

    def __call__(
        self, x: Tensor, generator: torch.Generator | None = None, passes: int | None = None
    ) -> Tensor: ...

    # f [..., B, T, C] -> [..., B], missing labels count zero
    def log_prob(self, f: Tensor, batch: Batch) -> Tensor: ...

    def output_predictive(self, f: Tensor) -> Predictive: ...  # f [S, B, T, C] -> a mixture of S


@runtime_checkable
class Penalised(Network, Protocol):
    """A network with parameters that can be fitted by a point estimate.

    Where the prior is learned, its density stays bounded.
    """

    # −log prior of the module's own parameters up to a constant, []
    def penalty(self) -> Tensor: ...


@runtime_checkable
class Dropout(Protocol, metaclass=ModuleProtocol):
    """A network that drops hidden units at random if it receives a generator."""

    @property
    def dropout(self) -> float: ...  # the rate


@runtime_checkable
class BatchNormalised(Protocol):
    """A network that normalises by batch statistics in training and by running statistics in
    prediction."""

    # the running means and variances themselves, in a fixed order
    def statistics(self) -> list[Tensor]: ...

    # recomputes them as means over batches x [B, D]; weights are unchanged
    def gather(self, batches: Sequence[Tensor]) -> None: ...


@runtime_checkable
class WeightSpace(Network, Protocol, metaclass=ModuleProtocol):
    """A network as a function of flat weights θ [P], which have independent zero-mean Gaussian
    priors."""

    theta: nn.Parameter  # [P]

    @property
    def prior_std(self) -> Tensor: ...  # [P]; differentiable where it is learned

    @property
    # True for convolutions, to which noise on pre-activations does not apply
    def shares_weights(self) -> bool: ...

    def hyperprior(self) -> Tensor: ...  # log prior of the parameters other than θ, []

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor: ...  # [K, P], [B, D] -> f [K, B, T, C]


@runtime_checkable
class AffineLayers(WeightSpace, Protocol):
    """A network in which all layers are affine maps of a row.

    Noise on their outputs can replace noise on weights.
    """

    # of θ [..., P]
    def layers(self, theta: Tensor) -> Layers: ...

    # affine(l, h) computes h W_lᵀ + b_l
    def propagate(self, x: Tensor, affine: Affine) -> Tensor: ...


@runtime_checkable
class ReversesInputs(Protocol):
    """A network with an optional explicit input derivative, without an autograd graph.

    None if not available as configured.
    """

    # f [B, T, C]; ∂/∂f [B, T, C] -> ∂/∂x [B, D]
    def reverse(self, x: Tensor) -> ReversedOutputs: ...


@runtime_checkable
class ReversesPredictive(Protocol):
    """Explicit input derivatives for K parameters θ [K, P] in parallel.

    They are taken at x [B, D], or at separate inputs for each parameter [K, B, D].
    """

    def predictive_reversed(
        self, theta: Tensor, x: Tensor
    ) -> ReversedPredictive: ...  # a mixture of K; ∂/∂f [K, B, T, C] -> ∂/∂x


@runtime_checkable
class CastableNetwork(Network, Protocol):
    """A network that can be copied to another floating-point format.

    The parameters of the copy do not require gradients.
    """

    def in_format(self, dtype: torch.dtype) -> Self: ...
