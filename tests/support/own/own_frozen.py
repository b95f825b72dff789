"""Networks with some layers that are frozen, or differ in training."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations


class Transfer(nn.Module):
    """Network with a frozen body, drawn from the seed, frozen means of the inputs, and a trained
    head."""

    def __init__(self, inputs: int = 4, outputs: int = 3, frozen: str = "body"):
        super().__init__()
        self.mean = nn.Parameter(torch.linspace(-1, 1, inputs), frozen in ("none", "detached"))
        self.body = nn.Linear(inputs, 6).requires_grad_(frozen in ("none", "detached"))
        self.head = nn.Linear(6, outputs).requires_grad_(frozen != "all")
        self.follows = frozen != "detached"

    def forward(self, x: Tensor) -> Tensor:
        with torch.set_grad_enabled(self.follows and torch.is_grad_enabled()):
            h = torch.tanh(self.body(x - self.mean))
        return self.head(h)


class Drift(nn.Module):
    """Layer with its own running means."""

    def __init__(self, n: int):
        super().__init__()
        self.register_buffer("mean", torch.zeros(n))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.mean.lerp_(x.detach().mean(0), 0.1)
        return x - self.mean


class RowNorm(nn.InstanceNorm1d):
    """Instance normalisation of the features of a row, with running statistics."""

    def __init__(self, n: int):
        super().__init__(1, affine=True, track_running_stats=True)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x[:, None])[:, 0]


class Noise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, 0.5, training=self.training)


class TwoOutputs(nn.Identity):
    """Network with a second output in training, as in networks with auxiliary heads."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, x], 1) if self.training else x


MIDDLES = {
    "batch_norm": nn.BatchNorm1d,
    "instance_norm": RowNorm,
    "spectral_norm": lambda n: parametrizations.spectral_norm(nn.Linear(n, n)),
    "old_spectral_norm": lambda n: nn.utils.spectral_norm(nn.Linear(n, n)),
    "weight_norm": lambda n: parametrizations.weight_norm(nn.Linear(n, n)),
    "old_weight_norm": lambda n: nn.utils.weight_norm(nn.Linear(n, n)),
    "drift": Drift,
    "noise": lambda n: Noise(),
    "rrelu": lambda n: nn.RReLU(),
    "two_outputs": TwoOutputs,
    "scripted": lambda n: torch.jit.script(nn.Linear(n, n)),
}


class Middle(nn.Module):
    """Network with a layer between two affine ones, which may be kept in prediction mode."""

    def __init__(
        self, inputs: int = 4, outputs: int = 3, middle: str = "noise", still: bool = False
    ):
        super().__init__()
        self.first = nn.Linear(inputs, 6)
        self.middle = MIDDLES[middle](6)
        self.head = nn.Linear(6, outputs)
        self.still = still

    def train(self, mode: bool = True) -> Middle:
        super().train(mode)
        self.middle.train(mode and not self.still)
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.middle(self.first(x))))
