"""The variational auto-encoder: a generative model and the guide of its latent variables."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt
from torch import Tensor

from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import LearnableScale, Model
from components.contracts.streams import Rng
from components.models.latent.amortised import Amortised, Scale, gaussian_guide
from components.models.latent.generative import BernoulliModel, GaussianModel
from components.models.latent.perceptron import Perceptron
from components.models.networks.activations import Activation
from components.problems.unlabelled import Unlabelled
from components.registry import register


class AutoEncoder(Amortised[Rows]):
    """Auto-encoder of rows without labels, which can generate and reconstruct rows."""

    def decode(self, z: Tensor) -> Tensor:
        return self.generative.mean(z).unflatten(-1, self.row_shape)  # [..., D] -> [..., …]


@register("model", "vae")
class VAE(Model[Unlabelled, AutoEncoder]):
    """Variational auto-encoder: rows x from latent z ~ N(0, I), and q(z|x) = N(m, diag s²).

    One network maps z to x and one maps x to q. Binary values are Bernoulli, real ones Gaussian
    with a common variance σ². The guide's hidden layers are those of the generative model in
    reverse, in one network for m and s or one for each. x [B, …], z [S, B, D]. Without hidden
    layers and for real values the generative model is probabilistic PCA.

    Source: Kingma and Welling (2014), section 3 and appendix C; Rezende, Mohamed and
    Wierstra (2014), section 4; Gallego (2021), Figure 2.12 (separate, softplus).
    """

    requires = Requirements(kinds={"unlabelled"}, values={"binary", "real"})

    latent_dim: PositiveInt
    widths: list[PositiveInt]
    activation: Activation
    noise: LearnableScale
    guide: Literal["shared", "separate"]
    scale: Scale

    def build(self, problem: Unlabelled, rng: Rng) -> AutoEncoder:
        x = problem.train.x
        rows = x.flatten(1).cpu()
        values = rows.shape[1]
        up = Perceptron([self.latent_dim, *self.widths, values], self.activation, rng)
        below = [*reversed(self.widths)]
        apart = self.guide == "separate"
        guide = gaussian_guide(
            values, below, self.latent_dim, self.activation, apart, self.scale, rng
        )
        binary = problem.values == "binary"
        generative = BernoulliModel(up, rows) if binary else GaussianModel(up, rows, self.noise)
        return AutoEncoder(generative, guide, self.latent_dim, x)
