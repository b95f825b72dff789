"""Sparse variational Gaussian processes over points (x, t), for independent and coregionalised
tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from components.contracts.predictive import Predictive
from components.maths.cholesky import jittered_cholesky, triangular_inverse
from components.maths.collapsed_bound import LabelMoments, OptimalInducing, collapse
from components.maths.divergences.gaussian_kl import kl_whitened
from components.maths.exponential.standard_draws import standard_normal
from components.models.deep_gp.likelihoods import GaussianLabels, predictive_at_draws
from components.models.shallow_gp.labels import Labels, group_by_task, pair_with_tasks
from components.models.shallow_gp.prior import GPParts, LearnedGP

if TYPE_CHECKING:
    from components.contracts.problems import Batch


@dataclass(frozen=True)
class Inducing:
    """Inducing points (z, t) in G groups: G = T for independent tasks, 1 for coregionalised
    ones."""

    z: Tensor  # [G, M, D]
    task: Tensor  # [G, M] long


class SparseGP(LearnedGP):
    """q(f) = ∫ p(f|u) q(u) du with u = L v, q(v) = N(m, C Cᵀ), L Lᵀ = K_zz + j I, for C latent
    functions per task.

    A = L⁻¹ K_zx,  μ = m(x) + Aᵀ m,  σ² = k(x, x) − Aᵀ A + Aᵀ C Cᵀ A;
    ELBO = N/B Σ_b E_q[log p(y_b|f_b)] − KL[q(v) ‖ N(0, I)].

    Source: Hensman, Fusi and Lawrence (2013), eq. (4); Hensman, Matthews and Ghahramani (2015),
    whitened."""

    def __init__(self, parts: GPParts, inducing: Inducing):
        super().__init__(parts)
        likelihood = parts.likelihood
        G, M, _ = inducing.z.shape
        self.inducing = nn.Parameter(inducing.z.clone())
        self.inducing_task = inducing.task
        self.q_mean = nn.Parameter(inducing.z.new_zeros(G, likelihood.outputs, M))
        eye = torch.eye(M, dtype=inducing.z.dtype, device=inducing.z.device)
        self.q_tril = nn.Parameter(eye.repeat(G, likelihood.outputs, 1, 1))

    # The bound
    def marginals(self, x: Tensor, task: Tensor) -> tuple[Tensor, Tensor, float]:
        """Means and variances [1, T, n, C] of q(f) at points (x [T or 1, n, D], task [T, n or 1]),
        and the jitter used."""
        Z = self.inducing
        z_task = self.inducing_task
        L, jitter = jittered_cholesky(
            self.covariance.matrix(Z, z_task, Z, z_task), self.jitter, "K_zz"
        )
        A = triangular_inverse(L) @ self.covariance.matrix(Z, z_task, x, task)  # [T, M, n]
        mean = (self.q_mean @ A).mT + _column(self.mean(x, task))  # [T, n, C]
        CA = self.q_tril.tril().mT @ A[:, None]  # [T, C, M, n]
        prior = self.covariance.variance(x, task) - A.square().sum(-2)  # [T, n]
        variance = (prior[:, None] + CA.square().sum(-2)).mT  # [T, n, C]
        return mean[None], variance.clamp_min(torch.finfo(variance.dtype).eps)[None], jitter

    def _normal(self, labels: Labels, n_samples: int, generator: torch.Generator) -> Tensor | None:
        if not self.likelihood.samples_f:
            return None
        shape = (n_samples, *labels.mask.shape, self.likelihood.outputs)
        return standard_normal(shape, generator, labels.x)

    def draw_noise(self, batch: Batch, n_samples: int, generator: torch.Generator) -> Tensor | None:
        """Standard normals [S, T, n, C] if the likelihood has neither a closed form nor a
        quadrature, else None."""
        return self._normal(group_by_task(batch), n_samples, generator)

    def elbo(self, batch: Batch, noise: Tensor | None) -> dict[str, Tensor]:
        """The bound on the log marginal likelihood, its terms and the jitter of K_zz, in nats."""
        labels = group_by_task(batch)
        mean, variance, jitter = self.marginals(labels.x, labels.task)
        expected = self.likelihood.expected_log_prob(labels.y, mean, variance, noise)  # [S, T, n]
        log_likelihood = torch.where(labels.mask, expected, 0.0).sum() * (
            batch.scale / expected.shape[0]
        )
        kl = kl_whitened(self.q_mean, self.q_tril.tril())
        return self.bound_terms(log_likelihood - kl, log_likelihood, kl, jitter)

    # Predictions
    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive:
        """p(y*|x*) of every task at x [B, D]: in closed form (S = 1), or a mixture over samples of
        f for classes."""
        points, tasks = pair_with_tasks(x, self.covariance.n_tasks)
        mean, variance, _ = self.marginals(points, tasks)
        noise = None
        if self.likelihood.samples_f:
            noise = standard_normal((n, *mean.shape[1:]), generator, mean)
        return self.likelihood.predictive(mean, variance, noise)

    def predict_f(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive:
        """p(y | f) at n draws of f, separately at every row of x [B, D]."""
        mean, variance, _ = self.marginals(*pair_with_tasks(x, self.covariance.n_tasks))
        return predictive_at_draws(self.likelihood, mean, variance, n, generator)

    # Interface for inference
    def variational_layers(self) -> dict[str, SparseGP]:
        """The layers with a q(v) for natural gradients: only this one."""
        return {"top": self}


class CollapsedSparseGP(SparseGP):
    """A sparse GP with Gaussian noise and the optimal q(v) in closed form.

    The bound is over all training labels; only Z and the hyper-parameters are optimised.
    B = I + A Σ⁻¹ Aᵀ,  S = B⁻¹,  m = B⁻¹ A Σ⁻¹ (y − m(x)), A = L⁻¹ K_zx.

    Source: Titsias (2009), eqs. (9) and (10); Boustati (2021), section 2.4.2."""

    def __init__(self, parts: GPParts, inducing: Inducing, labels: Labels):
        super().__init__(parts, inducing)
        self.labels = labels
        q = (self.q_mean.detach(), self.q_tril.detach())
        del self.q_mean, self.q_tril  # not parameters, but functions of the others
        self.register_buffer("q_mean", q[0])
        self.register_buffer("q_tril", q[1])

    def _optimum(self) -> tuple[OptimalInducing, float]:
        labels = self.labels
        z = self.inducing
        z_task = self.inducing_task
        L, jitter = jittered_cholesky(
            self.covariance.matrix(z, z_task, z, z_task), self.jitter, "K_zz"
        )
        K = self.covariance.matrix(z, z_task, labels.x, labels.task)
        A = triangular_inverse(L) @ K  # [G, M, n]
        assert isinstance(self.likelihood, GaussianLabels)
        noise = self.likelihood.noise_variance[labels.task]  # [G, n]
        weight = labels.mask / noise
        residual = labels.y - self.mean(labels.x, labels.task)
        prior = self.covariance.variance(labels.x, labels.task)
        weighted = A * weight[:, None]
        moments = LabelMoments(
            psi0=(weight * prior).sum(-1),
            psi1=(weighted @ residual[..., None]).mT,
            psi2=weighted @ A.mT,
            square=(weight * residual.square()).sum(-1),
            log_noise=torch.where(labels.mask, noise.log(), 0.0).sum(-1),
            number=labels.count,
        )
        return collapse(moments), jitter

    def elbo(self, batch: Batch, noise: Tensor | None) -> dict[str, Tensor]:
        """The bound for all training labels at the optimal q(v), its terms and the jitter of K_zz,
        in nats.  It does not depend on the batch."""
        optimum, jitter = self._optimum()
        with torch.no_grad():
            self.q_mean.copy_(optimum.mean)
            self.q_tril.copy_(optimum.scale[:, None])
            kl = kl_whitened(self.q_mean, self.q_tril)
        return self.bound_terms(optimum.bound, optimum.bound.detach() + kl, kl, jitter)

    def marginals(self, x: Tensor, task: Tensor) -> tuple[Tensor, Tensor, float]:
        """``SparseGP.marginals`` with the optimal q(v) at the current parameters."""
        with torch.no_grad():
            optimum, _ = self._optimum()
            self.q_mean.copy_(optimum.mean)
            self.q_tril.copy_(optimum.scale[:, None])
        return super().marginals(x, task)


def _column(mean: Tensor | float) -> Tensor | float:
    return mean if isinstance(mean, float) else mean[..., None]
