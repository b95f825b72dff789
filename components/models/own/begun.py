"""Network with given weights as the starting point of training and chains."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from components.maths.exponential.standard_draws import standard_normal
from components.models.networks.dense_network import DenseNetwork
from components.models.networks.feed_forward import FeedForward


class InitialisedNetwork(FeedForward):
    """The same network with other initial weights: θ = θ₀ + s z, z ~ N(0, I), instead of Glorot's
    weights or prior draws.  A learned log σ² starts at the network's value, without noise."""

    start: Tensor  # θ₀ [P']

    def __init__(self, network: FeedForward, spread: float):
        nn.Module.__init__(self)
        vars(self).update(vars(network))  # shares the network's parameters and buffers
        start = network.theta.detach().clone()
        begin = torch.cat([start, network.log_noise.detach()]) if self.learns_noise else start
        self.register_buffer("start", begin, persistent=False)  # stored in the file
        self.spread = spread

    def initial(self, n: int, generator: torch.Generator) -> Tensor:
        return init_copies(self.start, len(self.theta), self.spread, n, generator)

    def sample_start(self, n: int, generator: torch.Generator) -> Tensor:
        """Starting points θ [n, P'] of chains."""
        return self.initial(n, generator)


class InitialisedDenseNetwork(InitialisedNetwork, DenseNetwork):
    """``InitialisedNetwork`` of affine layers only, with their gradient in closed form."""


def init_copies(
    start: Tensor, moved: int, spread: float, n: int, generator: torch.Generator
) -> Tensor:
    """n copies of a row [P], with noise of standard deviation ``spread`` on its first ``moved``
    values, [n, P]."""
    theta = start.repeat(n, 1)
    if spread:
        theta[:, :moved] += spread * standard_normal((n, moved), generator, start)
    return theta
