"""The variational auto-encoder: a generative model and the guide that infers its latent variables."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn.functional import softplus

from components.contracts.problems import Rows, Values
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.models.latent.generative import BernoulliModel, GaussianModel, log_normal
from components.models.latent.perceptron import Perceptron
from components.models.networks.feed_forward import Activation
from components.problems.unlabelled import Unlabelled
from components.registry import register

Scale = Literal["exp", "softplus"]


class GaussianGuide(nn.Module):
    """q(z|x) = N(m(x), diag s(x)²): one network with two outputs for each latent dimension, m and a, or one network of each.

    s = e^a (exp), s² = log(1 + e^a) (softplus: Gallego 2021, Figure 2.12)."""

    def __init__(self, network: Perceptron, second: Perceptron | None = None, scale: Scale = "exp"):
        super().__init__()
        self.network, self.second, self.scale = network, second, scale

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """m, s [B, D] of x [B, I]."""
        m, a = self.network(x).chunk(2, -1) if self.second is None else (self.network(x), self.second(x))
        return m, a.exp() if self.scale == "exp" else softplus(a).sqrt()


def gaussian_guide(
    inputs: int, widths: list[int], latent_dim: int, activation: Activation, separate: bool, scale: Scale, rng: Rng
) -> GaussianGuide:
    """The guide of rows [B, I] with these hidden layers, or with these twice."""
    outputs = latent_dim if separate else 2 * latent_dim
    first = Perceptron([inputs, *widths, outputs], activation, rng)
    second = Perceptron([inputs, *widths, outputs], activation, rng) if separate else None
    return GaussianGuide(first, second, scale)


class AutoEncoder(nn.Module):
    """p(z) p(x|z) with z ~ N(0, I) [D], and q(z|x): two modules that learn from one bound.

    ℒ_b = E_q[log p(x_b|z)] − KL(q(z|x_b) ‖ p(z)), the second term in closed form (Kingma and Welling 2014, eq. 10)."""

    def __init__(self, generative: BernoulliModel | GaussianModel, guide: GaussianGuide, latent_dim: int, like: Tensor):
        super().__init__()
        self.generative, self.guide, self.latent_dim = generative, guide, latent_dim
        self.row_shape = like.shape[1:]
        self.to(like)

    @property
    def context_dim(self) -> int:
        return self.row_shape.numel()

    def context(self, batch: Rows) -> Tensor:
        return batch.x.flatten(1)  # [B, C]

    # ---- p and q, at any z --------------------------------------------------------------------------------------------
    def encode(self, batch: Rows) -> tuple[Tensor, Tensor]:
        return self.guide(self.context(batch))  # m, s [B, D]

    def decode(self, z: Tensor) -> Tensor:
        return self.generative.mean(z).unflatten(-1, self.row_shape)  # [..., D] -> [..., …]

    def sample_latent(self, n: int, generator: torch.Generator) -> Tensor:
        like = next(self.parameters())
        return torch.randn(n, self.latent_dim, generator=generator, dtype=like.dtype, device=like.device)

    def log_joint(self, batch: Rows, z: Tensor) -> Tensor:
        return self.generative.log_prob(batch.x.flatten(1), z) + log_normal(z, 0.0, torch.ones_like(z[0, 0]))  # [S, B]

    def log_q(self, batch: Rows, z: Tensor) -> Tensor:
        return log_normal(z, *self.encode(batch))  # [S, B]

    @torch.no_grad()
    def sample(self, batch: Rows, n_samples: int, generator: torch.Generator) -> Tensor:
        m, s = self.encode(batch)
        return m + s * self.draw_noise(batch, n_samples, generator)  # [S, B, D]

    # ---- the bound, through noise -------------------------------------------------------------------------------------
    def draw_noise(self, batch: Rows, n_samples: int, generator: torch.Generator) -> Tensor:
        shape = (n_samples, batch.n_rows, self.latent_dim)
        return torch.randn(shape, generator=generator, dtype=batch.x.dtype, device=batch.x.device)

    def elbo_rows(self, batch: Rows, noise: Tensor) -> Tensor:
        m, s = self.encode(batch)
        divergence = 0.5 * (m.square() + s.square() - 1).sum(-1) - s.log().sum(-1)  # KL(q(z|x_b) ‖ p(z)) [B]
        return self.rows_at(batch, m + s * noise) - divergence  # [S, B]

    def location_scale(self, batch: Rows) -> tuple[Tensor, Tensor]:
        m, s = self.encode(batch)
        return m, s.diag_embed()  # [B, D], [B, D, D]

    def rows_at(self, batch: Rows, theta: Tensor) -> Tensor:
        return self.generative.log_prob(batch.x.flatten(1), theta)  # [S, B]

    def kl(self) -> Tensor:
        return torch.zeros((), device=next(self.parameters()).device)  # rows share no latent variable

    def path_rows(self, batch: Rows, noise: Tensor) -> Tensor:
        m, s = self.encode(batch)
        z = m + s * noise
        return self.log_joint(batch, z) - log_normal(z, m.detach(), s.detach())  # [S, B]

    @property
    def noise_dim(self) -> int:
        return self.latent_dim


@register("model", "vae")
class VAE(Model[Unlabelled, AutoEncoder]):
    """Variational auto-encoder: a network from latent z ~ N(0, I) to rows x, and one from x to q(z|x) = N(m, diag s²).

    Binary values are Bernoulli, real ones Gaussian with one variance σ²; the guide's hidden layers are those of the
    generative model in reverse, once for m and s together or once for each of them.  x [B, …], z [S, B, D].  With no hidden
    layer and real values the generative model is probabilistic PCA.

    Source: Kingma and Welling (2014), section 3 and appendix C; Rezende, Mohamed and Wierstra (2014), section 4; Gallego
    (2021), Figure 2.12 (separate, softplus)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"unlabelled"})
    values: ClassVar[frozenset[Values] | None] = frozenset({"binary", "real"})
    offers: ClassVar[frozenset[str]] = frozenset(
        {
            "decoder",
            "latent_variable",
            "location_scale",
            "log_ratio",
            "normal_noise",
            "path_derivative",
            "pathwise",
            "row_context",
            "row_guide",
        }
    )

    before: ClassVar[dict[str, Any]] = {"guide": "shared", "scale": "exp"}

    latent_dim: PositiveInt
    widths: list[PositiveInt]
    activation: Activation
    noise: Literal["learned"] | Annotated[float, Field(gt=0)]
    guide: Literal["shared", "separate"]
    scale: Scale

    def build(self, problem: Unlabelled, rng: Rng) -> AutoEncoder:
        assert isinstance(problem.train, Rows)
        x = problem.train.x
        rows = x.flatten(1).cpu()
        values = rows.shape[1]
        up = Perceptron([self.latent_dim, *self.widths, values], self.activation, rng)
        below, apart = [*reversed(self.widths)], self.guide == "separate"
        guide = gaussian_guide(values, below, self.latent_dim, self.activation, apart, self.scale, rng)
        binary = problem.values == "binary"
        generative = BernoulliModel(up, rows) if binary else GaussianModel(up, rows, self.noise)
        return AutoEncoder(generative, guide, self.latent_dim, x)
