"""Semi-implicit family: a Gaussian with a mean computed by a network from noise."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal
from components.models.latent.perceptron import Perceptron


class MixedGaussian:
    """N(z | m(ε), diag s²) mixed over ε ~ N(0, I): densities and noise of one q, z [S, P], or of B
    in parallel, z [S, B, P]."""

    log_std: Tensor
    rows: tuple[int, ...] = ()  # (B,) if there are several

    @property
    def std(self) -> Tensor:
        return self.log_std.exp()  # s [P]

    @property
    def noise_dim(self) -> int:
        raise NotImplementedError  # E

    def mean(self, epsilon: Tensor) -> Tensor:
        """m(ε), [..., E] -> [..., P]."""
        raise NotImplementedError

    def mixing(self, n: int, generator: torch.Generator) -> Tensor:
        """ε ~ N(0, I) [n, E], or [n, B, E]."""
        return self._normal(n, self.noise_dim, generator)

    def conditional(self, n: int, generator: torch.Generator) -> Tensor:
        """Noise u ~ N(0, I) [n, P], or [n, B, P], for z = m(ε) + s u."""
        return self._normal(n, len(self.log_std), generator)

    def _normal(self, n: int, size: int, generator: torch.Generator) -> Tensor:
        return standard_normal((n, *self.rows, size), generator, self.log_std)

    def sample(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """n draws: their ε [n, E], means m(ε) and z = m(ε) + s u [n, P]; for rows [n, B, …]."""
        epsilon = self.mixing(n, generator)
        mean = self.mean(epsilon)
        return epsilon, mean, mean + self.std * self.conditional(n, generator)

    def log_conditional(self, z: Tensor, mean: Tensor) -> Tensor:
        """log N(z | m, diag s²), [..., P] each -> [...]."""
        return -0.5 * ((z - mean) / self.std).square().sum(-1) - self._log_normaliser

    def log_pairs(self, z: Tensor, means: Tensor) -> Tensor:
        """log N(z_i | m_k, diag s²) of all pairs, z [S, P], m [K, P] -> [S, K], or z [S, B, P],
        m [K, B, P] -> [S, K, B], by a matrix product."""
        # centring keeps the differences and reduces cancellation of the squares
        centre = means.mean(0).detach()
        a = (z - centre) / self.std
        b = (means - centre) / self.std
        products = 2 * a @ b.T if not self.rows else 2 * torch.einsum("sbp,kbp->skb", a, b)
        square = a.square().sum(-1)[:, None] + b.square().sum(-1) - products
        return -0.5 * square.clamp_min(0) - self._log_normaliser

    def log_surrogate(self, z: Tensor, own: Tensor, others: Tensor) -> Tensor:
        """log (K + 1)⁻¹ [N(z_i | m_i, diag s²) + Σ_k N(z_i | m_k, diag s²)] [S] ([S, B] for rows)
        of z [S, P] drawn at means ``own`` [S, P], with K further means ``others`` [K, P].  Its mean
        is at least E[log q(z)], so that subtracting it gives a lower bound.

        Source: Yin and Zhou (2018), section 3.2 (lower bound with K samples of the mixing
        distribution)."""
        pairs = torch.cat([self.log_conditional(z, own)[:, None], self.log_pairs(z, others)], 1)
        return pairs.logsumexp(1) - math.log(pairs.shape[1])

    @property
    def _log_normaliser(self) -> Tensor:
        return self.log_std.sum() + 0.5 * len(self.log_std) * LOG_2PI


class SemiImplicit(nn.Module, MixedGaussian):
    """q(z) = ∫ N(z | m(ε), diag s²) N(ε | 0, I) dε, m a perceptron, s independent of ε; z [.., P],
    ε [.., E].

    For an affine m(ε) = W ε + b the marginal is N(b, W Wᵀ + diag s²)."""

    def __init__(self, network: Perceptron, start: Tensor, std: float):
        super().__init__()
        self.network = network.to(start)
        network.layers[-1].bias.data.copy_(start)  # initial value of q
        self.log_std = nn.Parameter(torch.full_like(start, math.log(std)))

    @property
    def noise_dim(self) -> int:
        return self.network.layers[0].weight.shape[1]  # E

    def mean(self, epsilon: Tensor) -> Tensor:
        """m(ε), [..., E] -> [..., P]."""
        return self.network(epsilon)
