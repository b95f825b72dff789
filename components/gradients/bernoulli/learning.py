"""Learned parts of estimators for binary layers, trained to minimise the variance of the
estimate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from components.contracts.capabilities import BernoulliLayers, RowGuide
from components.contracts.problems import RowBatch
from components.contracts.streams import Rng
from components.gradients.learnt import Learnt
from components.models.latent.perceptron import Perceptron
from components.models.networks.activations import Activation


def descend(state: Learnt[Any], by_alpha: Sequence[Tensor]) -> None:
    """One Adam step that decreases Σ_l of the mean over draws and rows of |∂/∂α_l|², from
    ``by_alpha`` [S, B, D_l].

    If the mean of ∂/∂α does not depend on the learned parameters, this decreases the variance.
    Must be called after ``by_alpha`` has been used, because a control variate must be independent
    of the noise that it corrects."""
    square = torch.stack([g.square().sum(-1).mean() for g in by_alpha]).sum()
    parameters = list(state.control.parameters())  # without the model's
    slopes = torch.autograd.grad(square, parameters)
    for parameter, slope in zip(parameters, slopes, strict=True):
        parameter.grad = slope
    state.optimizer.step()
    state.optimizer.zero_grad()


def silent(sizes: Sequence[int], activation: Activation, rng: Rng) -> Perceptron:
    """A perceptron with initial output 0."""
    network = Perceptron(sizes, activation, rng)
    nn.init.zeros_(network.layers[-1].weight)
    return network


class RowLayers(BernoulliLayers[RowBatch], RowGuide[RowBatch], Protocol):
    """Binary layers with rows that auxiliary networks may read."""


class Surrogates(nn.Module):
    """r_l(x, z_1, …, z_{l−1}, ζ_l), a network for each layer, initially 0: free functions of a
    relaxed layer."""

    def __init__(self, module: RowLayers, widths: Iterable[int], rng: Rng):
        super().__init__()
        sizes = list(module.layer_sizes)
        hidden = list(widths)
        inside = [module.context_dim + sum(sizes[: index + 1]) for index in range(len(sizes))]
        self.networks = nn.ModuleList(silent([n, *hidden, 1], "tanh", rng) for n in inside)
        self.to(next(iter(module.parameters())))

    def forward(
        self, module: RowLayers, batch: RowBatch, below: Sequence[Tensor], zeta: Tensor
    ) -> Tensor:
        """r_l [S, B] from the l − 1 layers below and ζ_l, [S, B, D] each."""
        context = module.context(batch).detach().expand(len(zeta), -1, -1)
        output: Tensor = self.networks[len(below)](torch.cat([context, *below, zeta], -1))
        return output.squeeze(-1)
