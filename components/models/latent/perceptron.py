"""The multi-layer perceptron that decoders and guides are made of."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from components.contracts.streams import Rng
from components.models.networks.feed_forward import ACTIVATIONS, Activation


class AffineMap(nn.Module):
    """h ↦ W h + b; unlike ``nn.Linear`` its start is drawn from a stream, not from torch's global generator.

    Source: Glorot and Bengio (2010), eq. (16) for the initial weights."""

    def __init__(self, inside: int, out: int, rng: Rng):
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(out, inside), generator=rng.init))
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, h: Tensor) -> Tensor:
        return F.linear(h, self.weight, self.bias)


class Perceptron(nn.Module):
    """h ↦ W_L a(… a(W_1 h + b_1) …) + b_L, [..., sizes[0]] -> [..., sizes[-1]]; of two sizes it is affine."""

    def __init__(self, sizes: Sequence[int], activation: Activation, rng: Rng):
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.maps = nn.ModuleList(AffineMap(inside, out, rng) for inside, out in itertools.pairwise(sizes))

    @property
    def layers(self) -> list[AffineMap]:
        """The affine maps, in the order in which they act."""
        return [layer for layer in self.maps if isinstance(layer, AffineMap)]

    def forward(self, h: Tensor) -> Tensor:
        *hidden, last = self.layers
        for layer in hidden:
            h = self.activation(layer(h))
        return last(h)
