"""A Gaussian q(θ) over the parameters of any log joint, with the interface for gradient
estimators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from components.contracts.capabilities import CAPABILITIES, RowGuide
from components.contracts.capabilities.densities import DataBatch
from components.contracts.plugins.protocols import protocols_of
from components.contracts.problems import Batch, RowBatch, Rows
from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.maths.cholesky import LOG_2PI
from components.maths.divergences.gaussian_kl import kl_diagonal, kl_gaussian
from components.maths.exponential.standard_draws import standard_normal

Noise = Literal["shared", "rows"]
CHUNK = 100  # rows processed together in estimates of the full bound


def bound_in_chunks(
    start: Tensor,
    elbo_rows: Callable[[RowBatch, Tensor], Tensor],
    data: DataBatch,
    noise: Tensor,
) -> Tensor:
    """start + Σ_b mean_k elbo_rows [] over all N rows from K draws, ε [K, P]."""
    value = start
    for first in range(0, data.n_rows, CHUNK):
        n = min(CHUNK, data.n_rows - first)
        part = data.part(slice(first, first + n), data.n_rows / n)
        value = value + elbo_rows(part, noise.unsqueeze(1).expand(-1, n, -1)).mean(0).sum()
    return value


class GlobalGaussian(nn.Module):
    """Gaussian guide q(θ) = N(m, L Lᵀ) of all parameters.

    L is lower triangular with positive diagonal, or diagonal.

    Parameters: m [P], log diag L [P] and, for a full covariance, the entries below the
    diagonal row by row [P(P − 1)/2].

    θ is shared by all rows: every row b has the share ℓ_b = log p(y_b | θ) + (log p(θ) − log
    q(θ))/N of the bound, so that N/B Σ_b ℓ_b estimates it (a density is one row without data).
    Its noise [S, B, P] is either one draw expanded over the rows (``shared``, with stride 0, and
    evaluated once), or a draw for every row (``rows``), with contributions that are then
    independent.  Both have the same mean: E of ℓ_b does not depend on the other rows.
    """

    lower: nn.Parameter | None

    def __init__(self, target: RowwiseLogJoint, mean: Tensor, std: float, full: bool, noise: Noise):
        super().__init__()
        self.target = target
        self.noise = noise
        self.mean = nn.Parameter(mean.clone())
        self.log_std = nn.Parameter(torch.full_like(mean, math.log(std)))
        P = len(mean)
        self.lower = nn.Parameter(mean.new_zeros(P * (P - 1) // 2)) if full else None

    @property
    def scale_tril(self) -> Tensor:
        """L [P, P]."""
        L = self.log_std.exp().diag()
        P = len(self.mean)
        if self.lower is None:
            return L
        row, column = torch.tril_indices(P, P, -1, device=L.device)
        return L.index_put((row, column), self.lower)

    @property
    def covariance(self) -> Tensor:
        return self.scale_tril @ self.scale_tril.T

    @property
    def entropy(self) -> Tensor:
        """H(q) = Σ log L_pp + P/2 (1 + log 2π) []."""
        return self.log_std.sum() + 0.5 * len(self.mean) * (1 + LOG_2PI)

    def log_density(self, theta: Tensor) -> Tensor:
        """log q(θ), [..., P] -> [...]."""
        centred = theta - self.mean
        if self.lower is None:
            z = centred / self.log_std.exp()
        else:
            flat = torch.linalg.solve_triangular(
                self.scale_tril, centred.flatten(0, -2).T, upper=False
            )
            z = flat.T.reshape(theta.shape)
        return -0.5 * z.square().sum(-1) - self.log_std.sum() - 0.5 * len(self.mean) * LOG_2PI

    def transform(self, noise: Tensor) -> Tensor:
        """θ = m + L ε of noise ε [..., P]."""
        if self.lower is None:
            return self.mean + self.log_std.exp() * noise
        return self.mean + noise @ self.scale_tril.T

    @staticmethod
    def distinct(rows: Tensor) -> Tensor:
        """[S, B, P] -> [S, 1, P] if one draw was expanded over all rows."""
        return rows[:, :1] if rows.stride(1) == 0 else rows

    # Pathwise
    def draw_noise(self, batch: RowBatch, n_samples: int, generator: torch.Generator) -> Tensor:
        """ε ~ N(0, I) [S, B, P]: one per row, or one per sample expanded over the rows."""
        n_rows = batch.n_rows if self.noise == "rows" else 1
        shape = (n_samples, n_rows, len(self.mean))
        return standard_normal(shape, generator, self.mean).expand(-1, batch.n_rows, -1)

    def elbo_rows(self, batch: RowBatch, noise: Tensor) -> Tensor:
        """log p(y_b | θ_sb) [S, B] if the prior is Gaussian and ``kl`` is the rest; otherwise with
        the row's share of log p(θ_sb) + H(q)."""
        value = self.rows_at(batch, self.transform(self.distinct(noise)))
        return (
            value + self.entropy / (batch.scale * batch.n_rows)
            if self.target.prior_std is None
            else value
        )

    def kl(self) -> Tensor:
        """KL(q ‖ p) [] in closed form if the prior is Gaussian; otherwise 0, because the rows
        include it."""
        s = self.target.prior_std
        if s is None:
            return self.mean.new_zeros(())
        if self.lower is None:
            return kl_diagonal(self.mean, (2 * self.log_std).exp(), 0.0, s.square())
        return kl_gaussian(self.mean, self.scale_tril, torch.zeros_like(s), s.diag())

    @torch.no_grad()
    def elbo(self, data: DataBatch, noise: Tensor) -> Tensor:
        """The bound for all N rows [] from K draws, ε [K, P]."""
        return bound_in_chunks(-self.kl(), self.elbo_rows, data, noise)

    def path_rows(self, batch: RowBatch, noise: Tensor) -> Tensor:
        """Row terms log p(y_b | θ_sb) + (log p(θ_sb) − log q̄(θ_sb))/N [S, B].

        Gradients pass through θ only.
        """
        theta = self.transform(self.distinct(noise))
        theta_fixed = theta.detach()
        # value 0, with the gradient through θ only
        log_q = self.log_density(theta) - self.log_density(theta_fixed)
        share = self.target.log_prior(theta) - log_q - self.log_density(theta_fixed).detach()
        return self.target.log_likelihood(theta, batch) + share / (batch.scale * batch.n_rows)

    @property
    def noise_dim(self) -> int:
        return len(self.mean)

    @property
    def context_dim(self) -> int:
        return self.target.context_dim

    def context(self, batch: RowBatch) -> Tensor:
        """x_b and y_b concatenated [B, C]; missing labels are 0."""
        if isinstance(batch, Rows):
            return batch.x.flatten(1).to(self.mean.dtype)
        assert isinstance(batch, Batch)
        return batch.side_by_side().to(self.mean.dtype)

    # LocationScale, GlobalLatent
    def location_scale(self, batch: RowBatch) -> tuple[Tensor, Tensor]:
        return self.mean[None], self.scale_tril[None]  # m [1, P], L [1, P, P]

    def rows_at(self, batch: RowBatch, theta: Tensor) -> Tensor:
        """log p(y_b | θ_sb) [S, B], plus the row's share of log p(θ_sb) unless ``kl`` includes it
        in closed form."""
        value = self.target.log_likelihood(theta, batch)
        if self.target.prior_std is None:
            value = value + self.target.log_prior(theta) / (batch.scale * batch.n_rows)
        return value

    @property
    def n_data(self) -> int:
        return self.target.n_data

    # LogRatio
    @torch.no_grad()
    def sample(self, batch: RowBatch, n_samples: int, generator: torch.Generator) -> Tensor:
        """θ ~ q [S, B, P], shared by the rows like the noise."""
        theta = self.transform(self.distinct(self.draw_noise(batch, n_samples, generator)))
        return theta.expand(-1, batch.n_rows, -1)

    def log_q(self, batch: RowBatch, z: Tensor) -> Tensor:
        """Row shares log q(θ_sb)/N [S, B], each with the whole gradient of log q(θ_sb).

        The score function that multiplies a row's ℓ_b is the whole score of θ:
        ∇E_q ℓ_b = E_q[ℓ_b ∇log q(θ)].
        """
        value = self.log_density(self.distinct(z)).expand(-1, batch.n_rows)
        return value.detach() / (batch.scale * batch.n_rows) + (value - value.detach())

    def log_joint(self, batch: RowBatch, z: Tensor) -> Tensor:
        """log p(y_b | θ_sb) + log p(θ_sb)/N [S, B]."""
        theta = self.distinct(z)
        share = self.target.log_prior(theta) / (batch.scale * batch.n_rows)
        return self.target.log_likelihood(theta, batch) + share

    # FactoredGuide: a diagonal covariance, and draws shared by the rows
    @torch.no_grad()
    def draw_theta(self, n: int, generator: torch.Generator) -> Tensor:
        """θ ~ q [S, P]."""
        return self.transform(standard_normal((n, len(self.mean)), generator, self.mean))

    def log_q_each(self, theta: Tensor) -> Tensor:
        """log N(θ_si | m_i, σ_i²) [S, P]."""
        z = (theta - self.mean) / self.log_std.exp()
        return -0.5 * z.square() - self.log_std - 0.5 * LOG_2PI

    def log_joint_each(self, batch: RowBatch, theta: Tensor) -> tuple[Tensor, Tensor]:
        """log p(x, θ) [S], and for each coordinate [S, P] the likelihood with its own prior if that
        is N(0, diag s²), otherwise the whole log joint."""
        likelihood = batch.scale * self.target.log_likelihood(theta[:, None], batch).sum(1)
        s = self.target.prior_std
        if s is None:
            value = likelihood + self.target.log_prior(theta[:, None])[:, 0]
            return value, value[:, None].expand_as(theta)
        each = -0.5 * (theta / s).square() - s.log() - 0.5 * LOG_2PI
        return likelihood + each.sum(1), likelihood[:, None] + each


# θ is that of all rows
GAUSSIAN_CAPABILITIES = protocols_of(GlobalGaussian, CAPABILITIES) - {RowGuide}
