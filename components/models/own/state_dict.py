"""A network of this project with weights from a user's file."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import NonNegativeFloat, model_validator
from torch import Tensor

from components.contracts.capabilities import (
    CAPABILITIES,
    AffineLayers,
    BatchNormalised,
    ClosedFormScore,
    Collapsible,
    Dropout,
    LogJoint,
    Network,
    WarmStart,
)
from components.contracts.plugins.protocols import protocols_of
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.models.networks.dense_network import DenseNetwork
from components.models.networks.feed_forward import FeedForward
from components.models.own.begun import InitialisedDenseNetwork, InitialisedNetwork
from components.models.own.freezing import match_names, to_buffers
from components.models.own.ordinary_layers import sort_parameters
from components.models.own.weights_file import (
    expand_binary_head,
    fill_network,
    read_weights,
    unwrap_names,
)
from components.problems.supervised import Supervised
from components.registry import register

# closed forms of all layers, not available with frozen layers
UNFROZEN = frozenset({AffineLayers, Collapsible, ClosedFormScore})
MEND = "set model.network to the saved network, choose its file, or list its classes in dataset.classes"


@register("model", "state_dict")
class StateDict(Model[Supervised, Network]):
    """A network of this project with weights from a file: a fixed victim, or initial weights for
    training.

    The file is a safetensors file, or a file of ``torch.save`` with only tensors; no code in it is
    executed. Its tensors have the names of the network's tensors (a file of a network trained
    here), or names of PyTorch's layers: weights [out, in] or [out, in, k, k] and biases [out] of
    every layer of an mlp or a cnn.

        θ = (W_1, b_1, …, W_L, b_L),  f(x) = W_L a(… a(W_1 x + b_1) …) + b_L

    A last layer with one output per task gives log odds of binary labels. ``freeze`` takes weights
    out of θ by their names in the file. inference=fixed keeps θ; training methods start at θ,
    samplers and ensembles at θ + s z, z ~ N(0, I). The file's SHA-256 is part of the identity of a
    run. x [B, D] -> f [B, T, C].

    Raises:
        DamagedFileError: the file has another format.
        ConfigMismatchError: tensors are missing, unused, of another shape or not finite.

    Source: Paszke et al. (2019).
    """

    requires = Requirements(
        kinds={"supervised"},
        # the type is that of its network
        domains={"continuous", "binary", "tokens"},
    )
    # those of vgg and of a network with dropout apart, all that an mlp has
    offers_where = dict.fromkeys(
        protocols_of(InitialisedDenseNetwork, CAPABILITIES) - {Network}, "network=mlp"
    ) | {Dropout: "network={name: mlp, dropout: 0.1}", BatchNormalised: "network=vgg"}
    reads = {"path": "sha256"}

    path: str
    network: Model
    layers: list[str] | None
    prefix: str
    pixels: Literal["raw", "standardised"]
    spread: NonNegativeFloat
    sha256: str | None
    freeze: list[str]

    @model_validator(mode="after")
    def _check_network(self) -> StateDict:
        if Network not in self.network.capabilities() or self.network.reads:
            raise ValueError(
                f"network: {self.network.name} does not support weights from a file; use mlp, cnn or vgg"
            )
        return self

    def capabilities(self) -> Set[type]:
        capabilities = self.network.capabilities() - (UNFROZEN if self.freeze else frozenset())
        return capabilities | {WarmStart} if LogJoint in capabilities else capabilities

    def build(self, problem: Supervised, rng: Rng) -> Network:
        network: Any = self.network.build(problem, rng)
        tensors = read_weights(Path(self.path), self.prefix)
        where = f"model.path={self.path}"
        if not isinstance(network, FeedForward):
            if problem.target == "binary":
                expected = {
                    name: tuple(value.shape) for name, value in network.state_dict().items()
                }
                tensors = expand_binary_head(expected, unwrap_names(expected, tensors))
            fill_network(network, tensors, where, MEND)
            if self.freeze:
                network.facts = to_buffers(network, self.freeze)
            return network
        names = ["theta"]
        if "theta" in tensors:
            fill_network(network, tensors, where, MEND)
        else:
            names = self._take(network, tensors, where, problem.target == "binary")
        if self.freeze:
            frozen = match_names(self.freeze, names)
            network.freeze(network.pieces, [name in frozen for name in names])
        dense = isinstance(network, DenseNetwork) and not self.freeze
        return (InitialisedDenseNetwork if dense else InitialisedNetwork)(network, self.spread)

    @torch.no_grad()
    def _take(
        self,
        network: FeedForward,
        tensors: dict[str, Tensor],
        where: str,
        binary: bool,
    ) -> list[str]:
        """Copy weights of PyTorch's layers, and the standardisation of pixels; return the names of
        the weights."""
        weights = sort_parameters(network, tensors, self.layers, where, binary)
        network.theta.copy_(torch.cat([value.flatten() for value in weights.values()]))
        if network.front is not None and self.pixels == "raw":
            network.front.mean.zero_()
            network.front.std.fill_(1.0)
        return list(weights)
