"""Linear latent variables of rows with optional gaps: exact likelihood, EM, imputation."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from components.contracts.capabilities.latent import GuideMoments
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Rows
from components.contracts.streams import Rng
from components.maths.cholesky import half_log_det
from components.models.latent.generative import LOG_2PI, GaussianModel
from components.models.latent.perceptron import Perceptron
from components.models.latent.vae import AutoEncoder

TOLERANCE = 1e-7  # largest gain in nats per row of the last EM step
MOST_STEPS = 10_000


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
    """Posterior of z and evidence of rows x [B, I], with NaN for gaps and O_b the observed values.

        M_b = I + σ⁻² Σ_{i ∈ O_b} w_i w_iᵀ,   m_b = σ⁻² M_b⁻¹ Σ_{i ∈ O_b} w_i (x_bi − μ_i),
        −2 log p(x_b) = |O_b| log 2πσ² + log|M_b| + σ⁻² Σ_{i ∈ O_b} (x_bi − μ_i)² − m_bᵀ M_b m_b

    Source: Tipping and Bishop (1999), eqs. (3) and (6), for the values in O_b."""
    W, center, noise = factors
    observed = (~x.isnan()).to(x.dtype)
    residual = (x - center).nan_to_num(nan=0.0)
    M = torch.eye(W.shape[1]).to(x) + torch.einsum("bi,iq,ir->bqr", observed, W, W) / noise
    L = torch.linalg.cholesky(M)
    pull = residual @ W / noise
    mean = torch.cholesky_solve(pull.unsqueeze(2), L).squeeze(2)
    square = residual.square().sum(1) / noise - (pull * mean).sum(1)
    log_scale = observed.sum(1) * (LOG_2PI + noise.log()) + 2 * half_log_det(L)
    return RowCodes(mean, L, -0.5 * (log_scale + square))


def em_step(
    x: Tensor, factors: LinearFactors, weight_sd: float, points: bool
) -> tuple[LinearFactors, float]:
    """One step of EM over the observed values of rows x [N, I], and the objective before it.

        w̃_i = (Σ_n E[z̃_n z̃_nᵀ] + σ²/τ² diag(1, …, 1, 0))⁻¹ Σ_n x_ni E[z̃_n],  z̃ = (z, 1), w̃_i = (w_i, μ_i)
        σ² = mean of E[(x_ni − w̃_iᵀ z̃_n)²],  sums over the rows n in which i is observed

    The objective is Σ_n log p(x_n) − |W|²/2τ², which never decreases.  With ``points`` z_n is at
    its mode, without a covariance, and the objective is Σ_n log p(x_n, z_n) − |W|²/2τ² up to a
    constant: alternating least squares.  ``weight_sd`` is τ of p(W) = Π N(w | 0, τ²); ∞ means no
        prior.

    Source: Tipping and Bishop (1999), section 3.3 and appendix B (with gaps); Salakhutdinov and
    Mnih (2008), eqs. (1) to (4) (points)."""
    mean, L, log_evidence = infer_codes(x, factors)
    value = log_evidence.sum() - 0.5 * (factors.weights / weight_sd).square().sum()
    z = torch.nn.functional.pad(mean, (0, 1), value=1.0)  # E z̃ [N, Q + 1]
    second = z.unsqueeze(2) * z.unsqueeze(1)
    if points:
        value = value + half_log_det(L).sum()
    else:
        second[:, :-1, :-1] += torch.cholesky_inverse(L)
    filled = x.nan_to_num(nan=0.0)
    observed = (~x.isnan()).to(x.dtype)
    moments = torch.einsum("ni,nqr->iqr", observed, second)
    products = (filled.T @ z).unsqueeze(2)  # [I, Q + 1, 1]
    ridge = torch.full_like(z[0], float(factors.noise) / weight_sd**2)
    ridge[-1] = 0
    solved = torch.linalg.solve(moments + ridge.diag(), products)
    misfit = filled.square().sum() + (solved.mT @ (moments @ solved - 2 * products)).sum()
    noise = (misfit / observed.sum()).clamp_min(1e-12)
    return LinearFactors(solved[:, :-1, 0], solved[:, -1, 0], noise), float(value)


def fit_factors(
    x: Tensor, factors: LinearFactors, weight_sd: float, points: bool, tolerance: float = TOLERANCE
) -> LinearFactors:
    """EM until a step gains less than ``tolerance`` nats per row; columns of W are rotated to be
    orthogonal, longest first, with signs as on the CPU for any device."""
    last_value = -math.inf
    for _ in range(MOST_STEPS):
        further, value = em_step(x, factors, weight_sd, points)
        if value - last_value < tolerance * len(x):
            break
        factors = further
        last_value = value
    directions, lengths, _ = torch.linalg.svd(factors.weights.cpu(), full_matrices=False)
    return factors._replace(weights=(directions * lengths).to(x.device))


class LinearRows(AutoEncoder):
    """Probabilistic PCA with the exact p(z | observed values) as guide, with full covariance.

    The guide has no additional parameters: log q(z|x) = log p(x, z) − log p(x), and every bound
    equals log p(x) of the observed values for any noise."""

    def __init__(self, factors: LinearFactors, like: Tensor, rng: Rng):
        W, center, noise = factors
        up = Perceptron([W.shape[1], len(W)], "identity", rng)
        generative = GaussianModel(up, center[None].cpu(), "learned")
        super().__init__(generative, nn.Identity(), W.shape[1], like)
        self.affine = up.layers[-1]
        self.log_noise = generative.log_noise
        for parameter, value in zip(self.parameters(), (noise.log(), W, center), strict=True):
            parameter.data.copy_(value)

    def _codes(self, batch: Rows) -> RowCodes:
        factors = LinearFactors(self.affine.weight, self.affine.bias, self.log_noise.exp())
        return infer_codes(batch.x.flatten(1), factors)

    def context(self, batch: Rows) -> Tensor:
        return super().context(batch).nan_to_num(nan=0.0)

    def location_scale(self, batch: Rows) -> tuple[Tensor, Tensor]:
        codes = self._codes(batch)
        return codes.mean, torch.linalg.inv(codes.precision_factor).mT  # [B, Q], [B, Q, Q]

    def encode(self, batch: Rows) -> GuideMoments:
        m, scale = self.location_scale(batch)
        return m, scale.norm(dim=2)  # standard deviations of each z_d

    def rows_at(self, batch: Rows, theta: Tensor) -> Tensor:
        x = batch.x.flatten(1)
        square = (x - self.generative.mean(theta)).nan_to_num(nan=0.0).square().sum(-1)  # [S, B]
        scale = (~x.isnan()).sum(1) * (self.log_noise + LOG_2PI)
        return -0.5 * (square / self.log_noise.exp() + scale)

    def log_q(self, batch: Rows, z: Tensor) -> Tensor:
        return self.log_joint(batch, z) - self._codes(batch).log_evidence

    @torch.no_grad()
    def sample(self, batch: Rows, n_samples: int, generator: torch.Generator) -> Tensor:
        m, scale = self.location_scale(batch)
        noise = self.draw_noise(batch, n_samples, generator)
        return m + torch.einsum("bqr,sbr->sbq", scale, noise)

    def elbo_rows(self, batch: Rows, noise: Tensor) -> Tensor:
        return self._codes(batch).log_evidence.expand(len(noise), -1)

    path_rows = elbo_rows

    def elbo(self, batch: Rows, noise: Tensor) -> dict[str, Tensor]:
        """Σ_b log p(observed values of x_b)."""
        return {"elbo": batch.scale * self._codes(batch).log_evidence.sum()}

    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> GaussianMixture:
        """p(x_bi | observed values of x_b) = N(w_iᵀ m_b + μ_i, w_iᵀ M_b⁻¹ w_i + σ²) for every
        value, exact, with one component [1, B, I]."""
        m, scale = self.location_scale(Rows(x, 1.0))
        variance = (self.affine.weight @ scale).square().sum(2) + self.log_noise.exp()  # [B, I]
        return GaussianMixture(self.generative.mean(m)[None], variance[None])
