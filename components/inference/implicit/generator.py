"""The generator of an adversarial posterior, and the perceptron that it and its discriminator are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from components.inference.variational.mean_field_vi import WeightNetwork

LEAK = 0.2  # slope below 0 of the published code's leaky ReLUs


class LeakyPerceptron(nn.Module):
    """h ↦ W_L a(… a(W_1 h + b_1) …) + b_L, a(u) = max(u, 0.2 u), [..., sizes[0]] -> [..., sizes[-1]]; all begin as N(0, s²).

    Source: Rodríguez Santana and Hernández-Lobato (2020), section 6, and its code for the start."""

    def __init__(self, sizes: Sequence[int], initial_std: float, generator: torch.Generator, like: Tensor):
        super().__init__()

        def drawn(*shape: int) -> nn.Parameter:
            z = torch.randn(*shape, generator=generator, dtype=torch.float64, device=generator.device)
            return nn.Parameter((initial_std * z).to(like))

        self.weights = nn.ParameterList(drawn(out, inside) for inside, out in itertools.pairwise(sizes))
        self.biases = nn.ParameterList(drawn(out) for out in sizes[1:])

    def forward(self, h: Tensor) -> Tensor:
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = F.linear(F.leaky_relu(h, LEAK) if layer else h, weight, bias)
        return h


class Generator(nn.Module):
    """q(θ): θ = f_φ(ε), ε ~ N(μ, diag σ²) [D], f_φ a perceptron, μ and log σ² learned beside it (eq. 6, section 4.3).

    Where D is below the number of weights θ lies on a surface of dimension D and q has no density."""

    network: WeightNetwork

    def __init__(
        self,
        network: WeightNetwork,
        noise_dim: int,
        widths: Sequence[int],
        initial_std: float,
        noise_log_variance: float,
        generator: torch.Generator,
    ):
        super().__init__()
        like = network.theta.detach()
        self.network = network
        network.theta.requires_grad_(False)  # q gives the weights; the network's own take no part
        self.noise_mean = nn.Parameter(like.new_zeros(noise_dim))
        self.noise_log_variance = nn.Parameter(like.new_full((noise_dim,), noise_log_variance))
        self.body = LeakyPerceptron([noise_dim, *widths, len(like)], initial_std, generator, like)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """θ [n, P]."""
        mean = self.noise_mean
        noise = torch.randn(n, len(mean), generator=generator, dtype=mean.dtype, device=mean.device)
        theta: Tensor = self.body(torch.addcmul(mean, (0.5 * self.noise_log_variance).exp(), noise))
        return theta
