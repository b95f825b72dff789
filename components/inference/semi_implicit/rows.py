"""Semi-implicit encoder: a Gaussian with a mean computed by a network from a row and noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from components.contracts.capabilities import LatentVariable, RowGuide
from components.contracts.capabilities.latent import GuideMoments
from components.contracts.problems import RowBatch
from components.inference.latent.views import GuideView, replace_guide
from components.inference.semi_implicit.family import MixedGaussian
from components.models.latent.perceptron import Perceptron

MOMENT_SAMPLES = 64  # number of ε for the mean and the variance of q(z|x), the same for every row
AT_ONCE = 20  # number of latent values of each row in one call of the log joint


class GivenRows(MixedGaussian):
    """q(z|x_b) for B rows: z [S, B, D], ε [.., B, E]; the rows' contribution to the first layer is
    computed once."""

    def __init__(self, network: Perceptron, log_std: Tensor, hidden: Tensor, noise_weight: Tensor):
        self.network = network
        self.log_std = log_std
        self.hidden = hidden  # [B, H], or [B, D] for an affine m
        self.noise_weight = noise_weight  # columns of the first layer that read ε
        self.rows = (len(hidden),)

    @property
    def noise_dim(self) -> int:
        return self.noise_weight.shape[1]

    def mean(self, epsilon: Tensor) -> Tensor:
        """m(x_b, ε), [.., B, E] -> [.., B, D]."""
        h = self.hidden + epsilon @ self.noise_weight.T
        for layer in self.network.layers[1:]:
            h = layer(self.network.activation(h))
        return h

    def flatten_draws(self, n: int) -> GivenRows:
        """Flatten n·B conditionals to one dimension of draws, z [n·B, D], held fixed."""
        hidden = self.hidden.detach().expand(n, *self.hidden.shape).flatten(0, 1)
        flat = GivenRows(self.network, self.log_std.detach(), hidden, self.noise_weight.detach())
        flat.rows = ()
        return flat


class SemiImplicitEncoder(nn.Module):
    """A generative model of rows with q(z|x) = ∫ N(z | m(x, ε), diag s²) N(ε | 0, I) dε.

    m is a perceptron of the row's context and ε; s is the same for all rows.  The encoder of the
    model itself is not used.  For an affine m = A x + W ε + b the marginal is N(A x + b, W Wᵀ +
    diag s²).

    Source: Titsias and Ruiz (2019), section 4.3, and the published code, for s."""

    model: LatentVariable[RowBatch]

    def __init__(self, model: LatentVariable[RowBatch], network: Perceptron, std: float):
        super().__init__()
        assert isinstance(model, RowGuide)
        like = next(iter(model.parameters()))
        self.model = model
        self.noise_dim = network.layers[0].weight.shape[1] - model.context_dim  # E
        self.network = network.to(like)
        self.log_std = nn.Parameter(like.new_full((model.latent_dim,), math.log(std)))

    def given(self, batch: RowBatch) -> GivenRows:
        """q(z|x_b) for the rows of a batch."""
        assert isinstance(self.model, RowGuide)
        x = self.model.context(batch)
        first = self.network.layers[0]
        C = x.shape[1]
        hidden = x @ first.weight[:, :C].T + first.bias
        return GivenRows(self.network, self.log_std, hidden, first.weight[:, C:])

    def moments(self, batch: RowBatch, noise: Tensor) -> GuideMoments:
        """Mean and standard deviation of q(z|x_b), [B, D] each, from its means at ε [n, E]."""
        q = self.given(batch)
        means = q.mean(noise[:, None])
        return means.mean(0), (means.var(0, correction=0) + q.std.square()).sqrt()


class MomentGuide(nn.Module):
    """The Gaussian with the mean and the variances of a semi-implicit q(z|x), from fixed ε."""

    def __init__(self, encoder: SemiImplicitEncoder, seed: int):
        super().__init__()
        self.encoder = encoder
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(
            MOMENT_SAMPLES, encoder.noise_dim, generator=generator, dtype=torch.float64
        )
        self.noise = noise.to(encoder.log_std)

    def forward(self, model: LatentVariable[RowBatch], batch: RowBatch) -> GuideMoments:
        return self.encoder.moments(batch, self.noise)


@dataclass(frozen=True)
class SemiImplicitRowPosterior:
    """Semi-implicit q(z|x) of a trained model p(x, z)."""

    encoder: SemiImplicitEncoder
    bound_samples: int  # K
    seed: int

    @property
    def module(self) -> GuideView:
        """The model, with the Gaussian of q's moments as its guide."""
        return replace_guide(self.encoder.model, MomentGuide(self.encoder, self.seed))

    @torch.no_grad()
    def row_log_weights(
        self, batch: RowBatch, n_samples: int, generator: torch.Generator
    ) -> Tensor:
        """log p(x_b, z_s) − log (K + 1)⁻¹ Σ_{k=0}^K q(z_s|x_b, ε_k) [S, B], z_s drawn with ε_0 = ε_s.

        Their mean is the bound of SIVI, and the mean of their exponentials is p(x_b) for every K,
        because by symmetry z_s is a draw from the mixture in its own weight.

        Source: Yin and Zhou (2018), section 3.2; Owen and Zhou (2000), section 4."""
        q = self.encoder.given(batch)
        _, means, z = q.sample(n_samples, generator)
        others = q.mean(q.mixing(self.bound_samples, generator))
        parts = zip(z.split(AT_ONCE), means.split(AT_ONCE), strict=True)
        return torch.cat(
            [
                self.encoder.model.log_joint(batch, z_part)
                - q.log_surrogate(z_part, mean_part, others)
                for z_part, mean_part in parts
            ]
        )
