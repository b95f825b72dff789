"""Linear latent variables of rows with gaps: exact likelihood of observed values, EM, imputation."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Rows
from components.models.latent.generative import LOG_2PI, GaussianModel, log_normal
from components.models.latent.vae import AutoEncoder


class LinearFactors(NamedTuple):
    """x ~ N(W z + μ, σ² I), z ~ N(0, I)."""

    weights: Tensor  # W [I, Q]
    center: Tensor  # μ [I]
    noise: Tensor  # σ² []


class RowCodes(NamedTuple):
    """p(z_b | observed values of x_b) = N(m_b, (L_b L_bᵀ)⁻¹)."""

    mean: Tensor  # m [B, Q]
    precision_factor: Tensor  # L [B, Q, Q]
    log_evidence: Tensor  # log p(observed values of x_b) [B]


def infer_codes(x: Tensor, factors: LinearFactors) -> RowCodes:
    """Posterior of z and evidence of rows x [B, I], NaN in gaps, O_b the observed values.

        M_b = I + σ⁻² Σ_{i ∈ O_b} w_i w_iᵀ,   m_b = σ⁻² M_b⁻¹ Σ_{i ∈ O_b} w_i (x_bi − μ_i),
        −2 log p(x_b) = |O_b| log 2πσ² + log|M_b| + σ⁻² Σ_{i ∈ O_b} (x_bi − μ_i)² − m_bᵀ M_b m_b

    Source: Tipping and Bishop (1999), eqs. (3) and (6), of the values in O_b."""
    W, center, noise = factors
    Q = W.shape[1]
    observed = (~x.isnan()).to(x.dtype)
    residual = (x - center).nan_to_num(nan=0.0)
    outer = (W.unsqueeze(2) * W.unsqueeze(1)).flatten(1)  # [I, Q²]
    M = torch.eye(Q).to(x) + (observed @ outer).unflatten(1, (Q, Q)) / noise
    L = torch.linalg.cholesky(M)
    pull = residual @ W / noise
    mean = torch.cholesky_solve(pull.unsqueeze(2), L).squeeze(2)
    log_det = 2 * L.diagonal(dim1=1, dim2=2).log().sum(1)
    square = residual.square().sum(1) / noise - (pull * mean).sum(1)
    return RowCodes(mean, L, -0.5 * (observed.sum(1) * (LOG_2PI + noise.log()) + log_det + square))


def em_step(
    x: Tensor, factors: LinearFactors, weight_sd: float | None, points: bool
) -> tuple[LinearFactors, Tensor]:
    """One step of EM over the observed values of rows x [N, I], and the objective before it [].

        w̃_i = (Σ_n E[z̃_n z̃_nᵀ] + σ²/τ² diag(1, …, 1, 0))⁻¹ Σ_n x_ni E[z̃_n],  z̃ = (z, 1), w̃_i = (w_i, μ_i)
        σ² = mean of E[(x_ni − w̃_iᵀ z̃_n)²],  sums over the rows n in which i is observed

    The objective is Σ_n log p(x_n) + log p(W), which no step lowers. With ``points`` z_n is at its
    mode, without a covariance, and the objective Σ_n log p(x_n, z_n) + log p(W): alternating
    least squares.  ``weight_sd`` is τ of p(W) = Π N(w | 0, τ²); None: no prior.

    Source: Tipping and Bishop (1999), section 3.3 and appendix B (with gaps); Salakhutdinov and
    Mnih (2008), eqs. (1) to (4) (points)."""
    codes = infer_codes(x, factors)
    N, Q = codes.mean.shape
    value = codes.log_evidence.sum()
    extended = torch.cat([codes.mean, torch.ones_like(codes.mean[:, :1])], 1)  # E z̃ [N, Q + 1]
    second = extended.unsqueeze(2) * extended.unsqueeze(1)
    if points:
        log_det = codes.precision_factor.diagonal(dim1=1, dim2=2).log().sum()
        value = value + log_det - 0.5 * N * Q * LOG_2PI
    else:
        second[:, :Q, :Q] += torch.cholesky_inverse(codes.precision_factor)
    filled = x.nan_to_num(nan=0.0)
    observed = (~x.isnan()).to(x.dtype)
    moments = (observed.T @ second.flatten(1)).unflatten(1, (Q + 1, Q + 1))  # [I, Q + 1, Q + 1]
    products = filled.T @ extended  # [I, Q + 1]
    ridge = torch.zeros_like(extended[0])
    if weight_sd is not None:
        ridge[:Q] = factors.noise / weight_sd**2
        scale = torch.full_like(factors.weights, weight_sd)
        value = value + log_normal(factors.weights, 0.0, scale).sum()
    solved = torch.linalg.solve(moments + ridge.diag(), products.unsqueeze(2))  # [I, Q + 1, 1]
    fitted = (solved.mT @ moments @ solved).sum() - 2 * (products * solved.squeeze(2)).sum()
    noise = (filled.square().sum() + fitted) / observed.sum()
    return LinearFactors(
        solved[:, :Q, 0], solved[:, Q, 0], noise.clamp_min(1e-9 * filled.square().mean())
    ), value


def fit_factors(
    x: Tensor,
    start: LinearFactors,
    steps: int,
    tolerance: float,
    weight_sd: float | None,
    points: bool,
) -> LinearFactors:
    """EM until a step gains less than ``tolerance`` nats a row; columns of W turned to be
    orthogonal, longest first."""
    factors, before = start, -math.inf
    for _ in range(steps):
        further, value = em_step(x, factors, weight_sd, points)
        if float(value) - before < tolerance * len(x):
            break
        factors, before = further, float(value)
    directions, lengths, _ = torch.linalg.svd(factors.weights, full_matrices=False)
    return factors._replace(weights=directions * lengths)


class IncompleteRows(AutoEncoder):
    """PPCA of rows with gaps, with the exact p(z | observed values) as guide, of full covariance.

    The guide has no parameters of its own: log p(x, z) − log q(z|x) is the evidence of the observed
    values at any z."""

    generative: GaussianModel

    def __init__(self, generative: GaussianModel, latent_dim: int, like: Tensor):
        super().__init__(generative, nn.Identity(), latent_dim, like)

    def _codes(self, x: Tensor) -> RowCodes:
        up = self.generative.network.layers[-1]
        return infer_codes(x, LinearFactors(up.weight, up.bias, self.generative.log_noise.exp()))

    def context(self, batch: Rows) -> Tensor:
        return super().context(batch).nan_to_num(nan=0.0)

    def location_scale(self, batch: Rows) -> tuple[Tensor, Tensor]:
        codes = self._codes(batch.x.flatten(1))
        return codes.mean, torch.linalg.inv(codes.precision_factor).mT  # [B, Q], [B, Q, Q]

    def encode(self, batch: Rows) -> tuple[Tensor, Tensor]:
        m, scale = self.location_scale(batch)
        return m, scale.square().sum(2).sqrt()  # standard deviations of each z_d

    def rows_at(self, batch: Rows, theta: Tensor) -> Tensor:
        x = batch.x.flatten(1)
        missing = x.isnan()
        mean = self.generative.mean(theta)  # [S, B, I]
        sd = (0.5 * self.generative.log_noise).exp()
        each = -((torch.where(missing, mean, x) - mean) / sd).square() - 2 * sd.log() - LOG_2PI
        return 0.5 * (each * ~missing).sum(-1)

    def log_q(self, batch: Rows, z: Tensor) -> Tensor:
        return self._log_density(z, *self.location_scale(batch))

    def _log_density(self, z: Tensor, m: Tensor, scale: Tensor) -> Tensor:
        noise = torch.linalg.solve_triangular(scale, (z - m).unsqueeze(3), upper=True).squeeze(3)
        log_det = scale.diagonal(dim1=1, dim2=2).log().sum(1)
        return log_normal(noise, 0.0, torch.ones_like(m[0])) - log_det  # [S, B]

    def _draw(self, batch: Rows, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        m, scale = self.location_scale(batch)
        return m + (scale @ noise.unsqueeze(3)).squeeze(3), m, scale  # z [S, B, Q]

    @torch.no_grad()
    def sample(self, batch: Rows, n_samples: int, generator: torch.Generator) -> Tensor:
        return self._draw(batch, self.draw_noise(batch, n_samples, generator))[0]

    def path_rows(self, batch: Rows, noise: Tensor) -> Tensor:
        z, m, scale = self._draw(batch, noise)
        return self.log_joint(batch, z) - self._log_density(z, m.detach(), scale.detach())

    def elbo_rows(self, batch: Rows, noise: Tensor) -> Tensor:
        z, m, scale = self._draw(batch, noise)
        log_det = scale.diagonal(dim1=1, dim2=2).log().sum(1)
        square = m.square().sum(1) + scale.square().sum((1, 2)) - self.latent_dim
        return self.rows_at(batch, z) - (0.5 * square - log_det)  # [S, B]

    def elbo(self, batch: Rows, noise: Tensor) -> dict[str, Tensor]:
        """Σ_b log p(observed values of x_b), which no noise moves."""
        value = batch.scale * self._codes(batch.x.flatten(1)).log_evidence.sum()
        return {"elbo": value, "log_likelihood": value, "kl": torch.zeros_like(value)}

    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> GaussianMixture:
        """p(x_bi | observed values of x_b) = N(w_iᵀ m_b + μ_i, w_iᵀ M_b⁻¹ w_i + σ²) of every value,
        exact: one component [1, B, I]."""
        m, scale = self.location_scale(Rows(x, 1.0))
        spread = (self.generative.network.layers[-1].weight @ scale).square().sum(2)  # [B, I]
        return GaussianMixture(
            self.generative.mean(m)[None], (spread + self.generative.log_noise.exp())[None]
        )
