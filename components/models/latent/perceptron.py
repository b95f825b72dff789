"""The multi-layer perceptron of decoders and guides."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from components.contracts.streams import Rng
from components.maths.compiled.affine import affine
from components.models.networks.activations import ACTIVATIONS, Activation


def normal(shape: tuple[int, ...], std: float, rng: Rng) -> Tensor:
    """Draws from N(0, std²), in double precision for a network of any dtype."""
    return std * torch.randn(shape, generator=rng.init, dtype=torch.float64, device=rng.init.device)


class AffineMap(nn.Module):
    """h ↦ W h + b; unlike in ``nn.Linear``, initial weights come from a random stream of the run,
    not from torch's global generator.

    Source: Glorot and Bengio (2010), eq. (16) for the initial weights without ``std``."""

    def __init__(self, inside: int, out: int, rng: Rng, std: float | None = None):
        super().__init__()
        if std is None:
            weight = nn.init.xavier_uniform_(torch.empty(out, inside), generator=rng.init)
        else:
            weight = normal((out, inside), std, rng)
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(weight.new_zeros(out))

    def forward(self, h: Tensor) -> Tensor:
        return affine(h, self.weight, self.bias)


class Perceptron(nn.Module):
    """h ↦ W_L a(… a(W_1 h + b_1) …) + b_L, [..., sizes[0]] -> [..., sizes[-1]]; affine for two
    sizes.

    With ``std`` all weights and biases are initialised as N(0, std²); otherwise biases are 0."""

    def __init__(
        self, sizes: Sequence[int], activation: Activation, rng: Rng, std: float | None = None
    ):
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        # The affine maps in order; searching a module's own list is slow.
        self.layers = [
            AffineMap(inside, out, rng, std) for inside, out in itertools.pairwise(sizes)
        ]
        self.maps = nn.ModuleList(self.layers)
        if std is not None:
            for layer in self.layers:
                layer.bias.data.copy_(normal((len(layer.bias),), std, rng))

    def forward(self, h: Tensor) -> Tensor:
        *hidden, last = self.layers
        for layer in hidden:
            h = self.activation(layer(h))
        return last(h)

    def frozen_forward(self, h: Tensor) -> Tensor:
        """``forward`` with fixed parameters: gradients pass only through h."""
        for index, layer in enumerate(self.layers):
            h = affine(
                self.activation(h) if index else h, layer.weight.detach(), layer.bias.detach()
            )
        return h

    # Forward pass and derivative by the parameters, without autograd's record
    def run(self, h: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Output of ``forward``, and the input of each affine map.

        All inputs except the first are pre-activations.
        """
        inputs = []
        for index, layer in enumerate(self.layers):
            inputs.append(h)
            h = affine(self.activation(h) if index else h, layer.weight, layer.bias)
        return h, inputs

    def pull_back(self, given: Sequence[Tensor], c: Tensor) -> list[Tensor]:
        """Σ c · ∂output/∂φ for every parameter φ in order, given c [..., sizes[-1]].

        ``given`` are the inputs of the affine maps, as returned by ``run`` with that output.
        """
        gradients: list[Tensor] = []
        for layer, layer_input in zip(reversed(self.layers), reversed(given), strict=True):
            rows = c.flatten(0, -2)
            if layer_input is given[0]:
                return [affine(rows.T, layer_input.flatten(0, -2).T), rows.sum(0), *gradients]
            h, pull, *_ = torch.func.vjp(self.activation, layer_input)
            gradients = [affine(rows.T, h.flatten(0, -2).T), rows.sum(0), *gradients]
            (c,) = pull(affine(c, layer.weight.detach().T))
        return gradients
