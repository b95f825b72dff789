"""The Bayesian Gaussian process latent variable model."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities.latent import GuideMoments
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Rows
from components.contracts.requirements import REAL_ROWS
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.maths.cholesky import LOG_2PI, jittered_cholesky, triangular_inverse
from components.maths.collapsed_bound import LabelMoments, OptimalInducing, collapse
from components.maths.divergences.gaussian_kl import kl_diagonal
from components.maths.kernels import kernel
from components.models.latent.amortised import RowLatents
from components.models.latent.generative import log_normal
from components.models.latent.principal_axes import principal_axes
from components.problems.unlabelled import Unlabelled
from components.registry import register

CHUNK = 50_000_000  # entries of the largest tensor of Ψ₂


class LatentGP(RowLatents[Rows]):
    """x_n = f(z_n) + N(0, σ² I) + mean, f_i ~ GP(0, σ_f² exp(−½ Σ_q (z_q − z'_q)²/ℓ_q²)), z_n ~
    N(0, I), q(z_n) = N(m_n, diag s_n²) of the N training rows; and q(u) in closed form
    (``collapsed_bound``) for the I processes, which share kernel and inducing inputs.

    ψ₀ = N σ_f²,
    (Ψ₁)_nm = σ_f² Π_q exp(−½ (m_nq − Z_mq)²/(s_nq² + ℓ_q²)) (s_nq²/ℓ_q² + 1)^−½,
    (Ψ₂)_mm' = σ_f⁴ Σ_n Π_q exp(−(Z_mq − Z_m'q)²/4ℓ_q² − (m_nq − Z̄_q)²/(2 s_nq² + ℓ_q²))
               (2 s_nq²/ℓ_q² + 1)^−½,  Z̄ = (Z_m + Z_m')/2.

    Source: Titsias and Lawrence (2010), eqs. (14) and (19) to (25)."""

    center: Tensor
    rows: Tensor

    def __init__(
        self,
        x: Tensor,  # [N, I]
        row_shape: tuple[int, ...],
        start: Tensor,  # m [N, Q]
        inducing: Tensor,  # [M, Q]
        settings: GPLVM,
    ):
        super().__init__()
        self.row_shape = row_shape
        self.settings = settings
        self.latent_dim = start.shape[1]
        self.register_buffer("center", x.mean(0))
        self.register_buffer("rows", x - x.mean(0))
        variance = float(self.rows.square().mean().clamp_min(1e-6))
        self.q_mean = nn.Parameter(start.clone())
        self.log_q_scale = (
            nn.Parameter(torch.full_like(start, math.log(settings.q_scale)))
            if settings.latents == "variational"
            else None
        )
        self.inducing = nn.Parameter(inducing.clone())
        self.log_lengthscale = nn.Parameter(
            start.new_full(start.shape[1:], settings.lengthscale).log()
        )
        self.log_variance = nn.Parameter(start.new_tensor(math.log(variance)))
        self.log_noise = nn.Parameter(start.new_tensor(math.log(0.1 * variance)))
        self._fit: tuple[Tensor, OptimalInducing, Tensor] | None = None
        self._encoded: tuple[Tensor, Tensor, Tensor] | None = None

    # The bound
    def psi_statistics(self, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Ψ₁ [N, M] and Ψ₂ [M, M] for q(z_n) = N(m_n, diag v_n), m and v [N, Q]."""
        Z = self.inducing
        l2 = (2 * self.log_lengthscale).exp()
        M = len(Z)
        rate = 1 / (v + l2)
        square = (m.square() * rate).sum(1, keepdim=True) - 2 * (m * rate) @ Z.T
        log_psi1 = self.log_variance - 0.5 * (square + rate @ Z.square().T)
        log_psi1 = log_psi1 - 0.5 * torch.log1p(v / l2).sum(1, keepdim=True)
        middle = (0.5 * (Z[:, None] + Z[None])).flatten(0, 1)  # Z̄ [M², Q]
        apart = ((Z[:, None] - Z[None]).square() / l2).sum(-1).flatten() / 4  # [M²]
        total = Z.new_zeros(M * M)
        size = max(1, CHUNK // (M * M))
        for mean, variance in zip(m.split(size), v.split(size), strict=True):
            rate = 1 / (2 * variance + l2)
            square = (mean.square() * rate).sum(1, keepdim=True) - 2 * (mean * rate) @ middle.T
            square = square + rate @ middle.square().T + apart
            determinant = 0.5 * torch.log1p(2 * variance / l2).sum(1, keepdim=True)
            total = total + (2 * self.log_variance - square - determinant).exp().sum(0)
        return log_psi1.exp(), total.view(M, M)

    def _latents(self) -> tuple[Tensor, Tensor]:
        """m and variances of q(z) of the training rows, [N, Q] each."""
        if self.log_q_scale is None:
            return self.q_mean, torch.zeros_like(self.q_mean)
        return self.q_mean, (2 * self.log_q_scale).exp()

    def _optimum(self) -> tuple[OptimalInducing, Tensor, float]:
        """The optimal q(u), L⁻¹ and the jitter of K_zz."""
        Z = self.inducing
        psi1, psi2 = self.psi_statistics(*self._latents())
        length = self.log_lengthscale.exp()
        K = kernel(Z, Z, length, self.log_variance.exp(), "squared_exponential")
        L, jitter = jittered_cholesky(
            K, self.settings.jitter * float(self.log_variance.detach().exp()), "K_zz"
        )
        whiten = triangular_inverse(L)
        precision = (-self.log_noise).exp()
        N = psi1.new_tensor([float(len(psi1))])
        moments = LabelMoments(
            psi0=N * self.log_variance.exp() * precision,
            psi1=(precision * (whiten @ (psi1.T @ self.rows))).mT[None],
            psi2=(precision * (whiten @ psi2 @ whiten.mT))[None],
            square=(precision * self.rows.square().sum())[None],
            log_noise=N * self.log_noise,
            number=N,
        )
        return collapse(moments), whiten, jitter

    def draw_noise(self, batch: Rows, n_samples: int, generator: torch.Generator) -> None:
        """None, because the bound is not sampled."""

    def elbo(self, batch: Rows, noise: None) -> dict[str, Tensor]:
        """The bound on ln p of all training rows, in nats, its terms and the jitter of K_zz.

        It does not depend on the batch.  For ``latents: points`` the second term is −ln p(z).
        """
        optimum, _, jitter = self._optimum()
        m, v = self._latents()
        kl = (
            kl_diagonal(m, v, 0.0, 1.0)
            if self.log_q_scale is not None
            else -log_normal(m, 0.0, torch.ones_like(m[0])).sum()
        )
        bound = optimum.bound
        return {
            "elbo": bound - kl,
            "log_likelihood": bound,
            "kl": kl,
            "jitter": torch.tensor(jitter),
        }

    # Rows and latent variables
    def _moments_of(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean [..., I] and variance [...] of every value of x given z [..., Q], for the current
        parameters."""
        now = torch.cat([p.detach().reshape(-1) for p in self.parameters()])
        if self._fit is None or not torch.equal(self._fit[0], now):
            with torch.no_grad():
                optimum, whiten, _ = self._optimum()
            self._fit = now, optimum, whiten
            self._encoded = None
        _, optimum, whiten = self._fit
        flat = z.reshape(-1, z.shape[-1])
        variance = self.log_variance.exp()
        length = self.log_lengthscale.exp()
        A = kernel(flat, self.inducing, length, variance, "squared_exponential") @ whiten.T
        mean = A @ optimum.mean[0].T + self.center
        reduced = torch.linalg.solve_triangular(optimum.factor[0], A.T, upper=False)
        total = variance - A.square().sum(1) + reduced.square().sum(0) + self.log_noise.exp()
        shape = z.shape[:-1]
        return mean.reshape(*shape, -1), total.clamp_min(1e-12).reshape(shape)

    def rows_at(self, batch: Rows, theta: Tensor) -> Tensor:
        """log p(x_b | θ_sb, training rows) [S, B] for latent θ [S, B, Q]."""
        mean, variance = self._moments_of(theta)
        x = batch.x.flatten(1)
        square = (x - mean).square().sum(-1) / variance
        return -0.5 * (square + x.shape[1] * (variance.log() + LOG_2PI))

    def encode(self, batch: Rows) -> GuideMoments:
        """m and s [B, Q] of q(z_b) that maximises a row's bound E_q[log p(x_b | z)] − KL(q ‖ p),
        by ``encoder_steps`` of Adam from the nearest training row; E_q by the 2Q points m ± √Q s_q e_q,
        which have the mean and covariance of q."""
        x = batch.x.flatten(1) - self.center
        self._moments_of(self.q_mean[:1].detach())  # clears codes cached for other parameters
        if self._encoded is not None and self._encoded[0] is batch.x:
            return self._encoded[1:]
        nearest = torch.cdist(x, self.rows).argmin(1)
        m = self.q_mean.detach()[nearest].clone().requires_grad_()
        start = torch.full_like(m, math.log(0.3))
        if self.log_q_scale is not None:
            start = self.log_q_scale.detach()[nearest]
        log_s = start.clone().requires_grad_()
        axes = len(m[0]) ** 0.5 * torch.eye(len(m[0])).to(m)
        eps = torch.cat([axes, -axes]).unsqueeze(1)  # [2Q, 1, Q]
        optimizer = torch.optim.Adam([m, log_s], lr=0.05)
        with torch.enable_grad():
            for _ in range(self.settings.encoder_steps):
                fit = self.rows_at(batch, m + log_s.exp() * eps).mean(0).sum()
                loss = kl_diagonal(m, (2 * log_s).exp(), 0.0, 1.0) - fit
                m.grad, log_s.grad = torch.autograd.grad(loss, [m, log_s])
                optimizer.step()
        self._encoded = batch.x, m.detach(), log_s.detach().exp()
        return self._encoded[1:]

    def decode(self, z: Tensor) -> Tensor:
        return self._moments_of(z)[0].unflatten(-1, self.row_shape)

    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> GaussianMixture:
        """Distribution of the values of a row at latent variables x [B, Q]: [1, B, I]."""
        mean, variance = self._moments_of(x)
        return GaussianMixture(mean[None], variance[None, :, None].expand_as(mean[None]))


@register("model", "gplvm")
class GPLVM(Model[Unlabelled, LatentGP]):
    """Gaussian process latent variable model (GPLVM) of real rows, with a variational posterior or
    point estimates of the latent variables.

        x_ni = f_i(z_n) + N(0, σ²),   f_i ~ GP(0, k),   z_n ~ N(0, I)
        ℒ = Σ_i ln-bound of x_i (q(u) in closed form) − Σ_n KL[q(z_n) ‖ N(0, I)]

    k is squared exponential with a lengthscale per latent dimension, which switches off unneeded
    dimensions.  The latent variables are initialised at the principal components of the rows.  Each
    step evaluates the bound over all rows, O(N M² Q + M³), for inference=lbfgs.  Held-out rows are
    scored given the learnt q(u), with a guide fitted to each.  x [N, …].

    Source: Lawrence (2005) (points); Titsias and Lawrence (2010), eqs. (14), (19) to (25);
    Boustati (2021), section 2.1.2.2."""

    requires = REAL_ROWS

    latent_dim: PositiveInt
    latents: Literal["variational", "points"]
    n_inducing: PositiveInt
    lengthscale: PositiveFloat
    q_scale: PositiveFloat
    encoder_steps: PositiveInt
    jitter: PositiveFloat

    def build(self, problem: Unlabelled, rng: Rng) -> LatentGP:
        """Build the module for the training rows, initialised at their principal components.

        Raises:
            ConfigMismatchError: the latent dimensions are not fewer than the values of a row.
        """
        x = problem.train.x
        flat = x.flatten(1)
        axes = principal_axes(flat, self.latent_dim, self.name)
        start = (flat - axes.center) @ axes.directions / axes.variances[: self.latent_dim].sqrt()
        chosen = torch.randperm(len(flat), generator=rng.init)[: self.n_inducing].to(x.device)
        return LatentGP(flat, tuple(x.shape[1:]), start, start[chosen], self)
