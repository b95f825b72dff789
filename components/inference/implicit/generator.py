"""The generator of an adversarial posterior."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from components.contracts.capabilities import WeightSpace
from components.contracts.streams import Rng
from components.maths.exponential.standard_draws import standard_normal
from components.models.latent.perceptron import Perceptron


def leaky_perceptron(
    sizes: Sequence[int], initial_std: float, rng: Rng, like: Tensor
) -> Perceptron:
    """Perceptron of generators and discriminators, with leaky ReLUs of slope 0.2.

    Weights and biases start as draws from N(0, s²).

    Source: Rodríguez Santana and Hernández-Lobato (2020), section 6, and its code for the initial
    values.
    """
    return Perceptron(sizes, "leaky_relu", rng, initial_std).to(like)


class Generator(nn.Module):
    """Implicit distribution q(θ): θ = f_φ(ε), ε ~ N(μ, diag σ²) [D], f_φ a perceptron.

    μ and log σ² are learned together with f_φ (eq. 6, section 4.3).  If D is below the
    number of weights, θ lies on a surface of dimension D and q has no density.
    """

    network: WeightSpace

    def __init__(
        self,
        network: WeightSpace,
        noise_dim: int,
        widths: Sequence[int],
        initial_std: float,
        noise_log_variance: float,
        rng: Rng,
    ):
        super().__init__()
        like = network.theta.detach()
        self.network = network
        network.theta.requires_grad_(False)  # q draws the weights; the network's own are not used
        self.noise_mean = nn.Parameter(like.new_zeros(noise_dim))
        self.noise_log_variance = nn.Parameter(like.new_full((noise_dim,), noise_log_variance))
        self.body = leaky_perceptron([noise_dim, *widths, len(like)], initial_std, rng, like)

    def noise(self, n: int, generator: torch.Generator) -> Tensor:
        """Standard normal noise for n draws [n, D]."""
        mean = self.noise_mean
        return standard_normal((n, len(mean)), generator, mean)

    def of(self, noise: Tensor) -> Tensor:
        """θ [n, P] from ``noise``."""
        theta: Tensor = self.body(
            torch.addcmul(self.noise_mean, (0.5 * self.noise_log_variance).exp(), noise)
        )
        return theta

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """θ [n, P]."""
        return self.of(self.noise(n, generator))
