"""Base classes of row auto-encoders: q(z|x) = N(m, diag s²) and the bound as a function of its
noise."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from components.contracts.capabilities.latent import GuideMoments
from components.contracts.problems import Batch, Rows
from components.contracts.streams import Rng
from components.maths.exponential.standard_draws import standard_normal
from components.models.latent.generative import BernoulliModel, GaussianModel, log_normal
from components.models.latent.perceptron import Perceptron
from components.models.networks.activations import Activation

R = TypeVar("R", Rows, Batch)
Scale = Literal["exp", "softplus"]


class GaussianGuide(nn.Module):
    """q(z|x) = N(m(x), diag s(x)²): one network with two outputs per latent dimension, m and a, or
    one network for each.

    s = e^a (exp), s² = log(1 + e^a) (softplus: Gallego 2021, Figure 2.12)."""

    def __init__(self, network: Perceptron, second: Perceptron | None = None, scale: Scale = "exp"):
        super().__init__()
        self.network = network
        self.second = second
        self.scale = scale

    def forward(self, x: Tensor) -> GuideMoments:
        """m, s [B, D] at x [B, I]."""
        m, a = (
            self.network(x).chunk(2, -1)
            if self.second is None
            else (self.network(x), self.second(x))
        )
        return m, a.exp() if self.scale == "exp" else softplus(a).sqrt()


def gaussian_guide(
    inputs: int,
    widths: list[int],
    latent_dim: int,
    activation: Activation,
    separate: bool,
    scale: Scale,
    rng: Rng,
) -> GaussianGuide:
    """The guide for rows [B, I], with one network of these hidden layers or two."""
    outputs = latent_dim if separate else 2 * latent_dim
    first = Perceptron([inputs, *widths, outputs], activation, rng)
    second = Perceptron([inputs, *widths, outputs], activation, rng) if separate else None
    return GaussianGuide(first, second, scale)


class RowLatents(nn.Module, Generic[R]):
    """z_b ~ N(0, I) for each row, x_b given z_b, and q(z_b|x_b) = N(m, diag s²)."""

    latent_dim: int

    @abstractmethod
    def encode(self, batch: R) -> GuideMoments:
        """m, s [B, D]."""

    @abstractmethod
    def rows_at(self, batch: R, theta: Tensor) -> Tensor:
        """log p(x_b | z_sb) [S, B] at z [S, B, D]."""

    def log_joint(self, batch: R, z: Tensor) -> Tensor:
        return self.rows_at(batch, z) + log_normal(z, 0.0, torch.ones_like(z[0, 0]))  # [S, B]

    def log_q(self, batch: R, z: Tensor) -> Tensor:
        return log_normal(z, *self.encode(batch))  # [S, B]

    @torch.no_grad()
    def sample(self, batch: R, n_samples: int, generator: torch.Generator) -> Tensor:
        m, s = self.encode(batch)
        return m + s * self._normal(n_samples, m, generator)  # [S, B, D]

    def _normal(self, n: int, like: Tensor, generator: torch.Generator) -> Tensor:
        return standard_normal((n, *like.shape), generator, like)

    def sample_latent(self, n: int, generator: torch.Generator) -> Tensor:
        return standard_normal((n, self.latent_dim), generator, next(self.parameters()))


class Amortised(RowLatents[R]):
    """p(z) p(x|z) with z ~ N(0, I) [D], and q(z|x): two modules trained on one bound.

    ℒ_b = E_q[log p(x_b|z)] − KL(q(z|x_b) ‖ p(z)), the second term in closed form (Kingma and
    Welling 2014, eq. 10)."""

    def __init__(
        self,
        generative: BernoulliModel | GaussianModel,
        guide: GaussianGuide | nn.Identity,
        latent_dim: int,
        like: Tensor,
    ):
        super().__init__()
        self.generative = generative
        self.guide = guide
        self.latent_dim = latent_dim
        self.row_shape = like.shape[1:]
        self.to(like)

    @property
    def context_dim(self) -> int:
        return self.row_shape.numel()

    def context(self, batch: R) -> Tensor:
        return batch.x.flatten(1)  # [B, C]

    # p and q, at any z
    def encode(self, batch: R) -> GuideMoments:
        return self.guide(self.context(batch))  # m, s [B, D]

    # The bound as a function of noise
    def draw_noise(self, batch: R, n_samples: int, generator: torch.Generator) -> Tensor:
        shape = (n_samples, batch.n_rows, self.latent_dim)
        return standard_normal(shape, generator, batch.x)

    def elbo_rows(self, batch: R, noise: Tensor) -> Tensor:
        m, s = self.encode(batch)
        # KL(q(z|x_b) ‖ p(z)) [B]
        divergence = 0.5 * (m.square() + s.square() - 1).sum(-1) - s.log().sum(-1)
        return self.rows_at(batch, m + s * noise) - divergence  # [S, B]

    def location_scale(self, batch: R) -> tuple[Tensor, Tensor]:
        m, s = self.encode(batch)
        return m, s.diag_embed()  # [B, D], [B, D, D]

    def rows_at(self, batch: R, theta: Tensor) -> Tensor:
        return self.generative.log_prob(batch.x.flatten(1), theta)  # [S, B]

    def kl(self) -> Tensor:
        # rows do not share latent variables
        return torch.zeros((), device=next(self.parameters()).device)

    def path_rows(self, batch: R, noise: Tensor) -> Tensor:
        m, s = self.encode(batch)
        z = m + s * noise
        return self.log_joint(batch, z) - log_normal(z, m.detach(), s.detach())  # [S, B]

    @property
    def noise_dim(self) -> int:
        return self.latent_dim
