"""Capabilities of models with latent variables: guides, densities of their draws, decoders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from components.contracts.capabilities.modules import ModuleProtocol, Shown, Trainable
from components.contracts.problems import Batch

# u, v [S, B] -> Σ_sb (u_sb ∇log q(z_sb|x_b) + v_sb ∇log p(x_b, z_sb)) for each parameter in order;
# None if independent of the parameter
PullBack = Callable[[Tensor, Tensor], list[Tensor | None]]
GuideMoments = tuple[Tensor, Tensor]  # m and s [B, D] of q(z|x) = N(m, diag s²)


@runtime_checkable
class LogRatio(Trainable, Protocol[Shown]):
    """A bound E_q[log p(x, z) − log q(z|x)] with both log densities available at any z.

    The densities are given row by row.  z is a tensor [S, B, …], or a tuple of tensors (the
    layers of a deep model).
    """

    # z ~ q(z|x), no gradient
    def sample(self, batch: Shown, n_samples: int, generator: torch.Generator) -> Any: ...

    def log_q(self, batch: Shown, z: Any) -> Tensor: ...  # log q(z|x) [S, B]

    def log_joint(self, batch: Shown, z: Any) -> Tensor: ...  # log p(x, z) [S, B]


@runtime_checkable
class DrawsWithDensity(LogRatio[Shown], Protocol[Shown]):
    """A guide that computes both densities and their derivative at its own draws.

    This takes one pass through its networks for log q instead of two, and no autograd graph.
    """

    # the draws of ``sample``, no gradient, and their ``log_q`` [S, B]
    def sample_with_log_q(
        self, batch: Shown, n_samples: int, generator: torch.Generator
    ) -> tuple[Any, Tensor]: ...

    # at the draws of ``sample``: their ``log_q`` and ``log_joint`` [S, B], no gradient, and the
    # derivative of both
    def draw_with_derivative(
        self, batch: Shown, n_samples: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, PullBack]: ...


@runtime_checkable
class RowGuide(LogRatio[Shown], Protocol[Shown], metaclass=ModuleProtocol):
    """A guide q(z_b|x_b) with a context for each row, which auxiliary networks may read.

    Each row has its own latent variables.
    """

    @property
    def context_dim(self) -> int: ...  # C; 0 where there are no rows

    def context(self, batch: Shown) -> Tensor: ...  # of each row, no gradient [B, C]


@runtime_checkable
class LatentVariable(LogRatio[Shown], Protocol[Shown], metaclass=ModuleProtocol):
    """A generative model p(x, z) with a guide q(z|x) = N(m(x), diag s(x)²); z [S, B, D]."""

    @property
    def latent_dim(self) -> int: ...  # D

    def encode(self, batch: Shown) -> GuideMoments: ...


@runtime_checkable
class ClassConditional(LatentVariable[Batch], Protocol, metaclass=ModuleProtocol):
    """A generative model p(y) p(z) p(x|z, y) of rows with one class y each; the guide and the
    densities receive the class."""

    @property
    def log_share(self) -> Tensor: ...  # log p(y) [C]


@runtime_checkable
class BernoulliLayers(LogRatio[Shown], Protocol[Shown], metaclass=ModuleProtocol):
    """Binary latent variables in L layers, z = (z_1, …, z_L), z_l [S, B, D_l].

    The guide draws each layer given the one below:
    q(z|x) = Π_l Π_d Bernoulli(z_ld | sigmoid(α_ld)), α_1 a function of x, α_l of z_{l−1}.
    ``log_joint`` and ``log_q`` are smooth functions of z, so relaxed values in (0, 1) may
    replace z.
    """

    @property
    def n_layers(self) -> int: ...  # L

    @property
    def layer_sizes(self) -> Sequence[int]: ...  # D_1, …, D_L

    # α_l of the layer above the given layers, lowest first: [S, B, D_l]; no layer given: [1, B,
    # D_1]
    def logits(self, batch: Shown, below: Sequence[Tensor]) -> Tensor: ...


@runtime_checkable
class Decoder(Protocol):
    """A generative model as a function of its latent variables.

    Used to draw new rows and to display the meaning of a latent value.
    """

    def sample_latent(self, n: int, generator: torch.Generator) -> Tensor: ...  # z ~ p(z) [n, D]

    # E[x|z], z [..., D] -> [..., *row shape]
    def decode(self, z: Tensor) -> Tensor: ...
