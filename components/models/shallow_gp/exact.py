"""Exact Gaussian-process regression: log marginal likelihood of all labels with an explicit
gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from components.contracts.predictive import GaussianMixture, Predictive
from components.maths.cholesky import LOG_2PI, half_log_det, jittered_cholesky
from components.maths.exponential.standard_draws import standard_normal
from components.models.deep_gp.likelihoods import GaussianLabels, predictive_at_draws
from components.models.shallow_gp.exact_cost import BLOCK
from components.models.shallow_gp.labels import Labels, pair_with_tasks
from components.models.shallow_gp.prior import GPParts, LearnedGP

if TYPE_CHECKING:
    from components.contracts.problems import Batch

CovarianceRows = Callable[[Tensor, slice], Tensor]  # of the points x and rows


def _factor(K: Tensor, d: Tensor, jitter: float) -> tuple[Tensor, float]:
    """Lower L with L Lᵀ = K + diag(d) + j I, and j, which is ``jitter`` or larger if necessary."""
    A = K.clone().mT  # LAPACK's layout, in which a factor takes the place of its matrix
    torch.linalg.diagonal(A).add_(d + jitter)
    info = torch.empty(0, dtype=torch.int32, device=A.device)
    torch.linalg.cholesky_ex(A, out=(A, info))
    if not info.any():
        return A, jitter
    return jittered_cholesky(
        K + torch.diag_embed(d + jitter), 10 * jitter, "the covariance of the training labels"
    )


class _LogGaussian(torch.autograd.Function):
    """−½ rᵀ (K + D)⁻¹ r − ½ log|K + D| for K [G, n, n], D = diag(d), d and r [G, n] -> [G], and the
    jitter used; if ``reuse``, the backward pass writes its result into K."""

    @staticmethod
    def forward(
        ctx, K: Tensor, d: Tensor, r: Tensor, jitter: float, reuse: bool
    ) -> tuple[Tensor, float]:
        ctx.spare = K.mT if reuse else None
        L, used = _factor(K, d, jitter)
        # α = (K + D)⁻¹ r, by triangular solves, because cholesky_solve copies L
        half = torch.linalg.solve_triangular(L, r[..., None], upper=False)
        alpha = torch.linalg.solve_triangular(L.mT, half, upper=True)[..., 0]
        ctx.save_for_backward(L, alpha)
        return -0.5 * (r * alpha).sum(-1) - half_log_det(L), used

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor, _: Any):
        # ∂/∂K = ½ (α αᵀ − K⁻¹), Rasmussen and Williams (2006), eq. (5.9): an inverse from the
        # factor, instead of two triangular solves and two products in the backward pass of a
        # Cholesky.
        L, alpha = ctx.saved_tensors
        half = 0.5 * gradient[..., None]
        inverse = torch.cholesky_inverse(L, out=ctx.spare)
        ctx.spare = None
        dd = half * (alpha.square() - torch.linalg.diagonal(inverse))
        dK = torch.baddbmm(inverse, alpha[..., :, None], alpha[..., None, :], beta=-1, out=inverse)
        return dK.mul_(half[..., None]), dd, -gradient[..., None] * alpha, None, None


class _BlockedCovariance(torch.autograd.Function):
    """K [G, n, n] of points x [G, n, D], computed in blocks of rows by ``covariance(x, rows)``; the
    derivatives by x and the parameters come from a second computation of each block."""

    @staticmethod
    def forward(ctx, covariance: CovarianceRows, x: Tensor, *parameters: Tensor) -> Tensor:
        ctx.covariance = covariance
        ctx.save_for_backward(x, *parameters)
        K = x.new_empty(*x.shape[:2], x.shape[1])
        for rows in _blocks(x):
            K[:, rows] = covariance(x, rows)
        return K

    @staticmethod
    @once_differentiable
    def backward(ctx, dK: Tensor):
        values = ctx.saved_tensors
        inputs = [value for value in values if value.requires_grad]
        totals = [torch.zeros_like(value) for value in inputs]
        for rows in _blocks(values[0]):
            with torch.enable_grad():
                block = ctx.covariance(values[0], rows)
            gradients = torch.autograd.grad(block, inputs, dK[:, rows], materialize_grads=True)
            for total, gradient in zip(totals, gradients, strict=True):
                total += gradient
        found = iter(totals)
        return None, *(next(found) if value.requires_grad else None for value in values)


def _is_blocked(x: Tensor) -> bool:
    """True if covariances of all pairs of points are computed in blocks."""
    return x.shape[0] * x.shape[1] ** 2 > BLOCK


def _blocks(x: Tensor) -> Iterator[slice]:
    """Rows of covariances of all pairs of points, with at most ``BLOCK`` elements each."""
    groups, n = x.shape[:2]
    step = max(1, BLOCK // (groups * n))
    return (slice(first, first + step) for first in range(0, n, step))


@dataclass(frozen=True)
class ExactGPCache:
    """Summary of the training labels for predictions."""

    L: Tensor  # [G, n, n], L Lᵀ = K + Σ
    beta: Tensor  # [G, n], L⁻¹ (y − m)


class ExactGP(LearnedGP):
    """y = f_t(x) + N(0, σ_t²), f ~ GP: the bound is the log marginal likelihood.

        log p(y) = −½ (y − m)ᵀ (K + Σ)⁻¹ (y − m) − ½ log|K + Σ| − ½ N log 2π

    It is summed over groups of labels; the covariance between groups is 0. Padded entries have a
    unit diagonal, zero covariance and zero residual, so they contribute nothing.

    Source: Rasmussen and Williams (2006), eqs. (2.23) to (2.30) and (5.8), (5.9).
    """

    likelihood: GaussianLabels

    def __init__(self, parts: GPParts, labels: Labels):
        super().__init__(parts)
        self.labels = labels
        self._conditioned: tuple[Tensor, ExactGPCache] | None = None

    # The bound
    def _system(self, labels: Labels) -> tuple[Tensor, Tensor, Tensor]:
        """K [G, n, n], the diagonal of Σ [G, n] and y − m [G, n] of labels."""
        x = labels.x
        y = labels.y
        task = labels.task
        mask = labels.mask
        is_padded = not bool(mask.all())

        def covariance(x: Tensor, rows: slice) -> Tensor:
            K = self.covariance.matrix(x[:, rows], task[:, rows], x, task)
            return K * (mask[:, rows, None] & mask[:, None, :]) if is_padded else K

        if _is_blocked(x):
            K = _BlockedCovariance.apply(covariance, x, *self.covariance.parameters())
        else:
            K = covariance(x, slice(None))
        diagonal = self.likelihood.noise_variance[task]
        residual = y - self.mean(x, task)
        if is_padded:
            diagonal = torch.where(mask, diagonal, torch.ones_like(diagonal))
            residual = residual * mask
        return K, diagonal, residual

    def draw_noise(self, batch: Batch, n_samples: int, generator: torch.Generator) -> None:
        """None, because the bound is not sampled."""

    def log_marginal(self, labels: Labels) -> tuple[Tensor, float]:
        """log p(y) of labels, in nats, and the jitter used."""
        reuse = _is_blocked(labels.x)
        log_density, jitter = _LogGaussian.apply(*self._system(labels), self.jitter, reuse)
        return log_density.sum() - 0.5 * LOG_2PI * labels.total, jitter

    def elbo(self, batch: Batch, noise: None) -> dict[str, Tensor]:
        """log p(y) of all training labels, in nats, plus the log hyper-prior, if any.

        It does not depend on the batch.
        """
        marginal, jitter = self.log_marginal(self.labels)
        return self.bound_terms(marginal, marginal, torch.zeros_like(marginal), jitter)

    # Predictions
    @property
    def evidence(self) -> Labels:
        """The labels on which predictions are conditioned, those of the bound."""
        return self.labels

    @torch.no_grad()
    def condition(self) -> ExactGPCache:
        """The Cholesky factor at the current hyper-parameters, recomputed only after they
        change."""
        # Compared by value, because version counters of tensors miss some optimizers (fused Adam).
        now = torch.cat([p.reshape(-1) for p in self.parameters()])
        if self._conditioned is None or not torch.equal(self._conditioned[0], now):
            self._conditioned = now, self.condition_on(self.evidence)
        return self._conditioned[1]

    def condition_on(self, labels: Labels) -> ExactGPCache:
        """``condition`` for any labels."""
        K, diagonal, residual = self._system(labels)
        L, _ = _factor(K, diagonal, self.jitter)
        return ExactGPCache(
            L, torch.linalg.solve_triangular(L, residual[..., None], upper=False)[..., 0]
        )

    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive:
        """p(y*|x*, y) of every task at x [B, D], in closed form: S = 1; differentiable in x."""
        return self.predict_from(self.condition(), self.evidence, x)

    @torch.no_grad()
    def sample_f(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """p(y* | f) at one draw f | y, jointly at x [B, D] and all tasks: S = 1.

            f* = g* + K_*x (K + Σ)⁻¹ (y − g − ε),   (g, g*) a draw of the prior, ε ~ N(0, Σ)

        Source: Boustati (2021), eqs. (2.15) to (2.17); Matheron's rule, Wilson et al. (2020)."""
        labels = self.evidence
        condition = self.condition()
        rows, inverse = labels.x.reshape(-1, x.shape[1]).unique(dim=0, return_inverse=True)
        prior = self.sample_prior_f(torch.cat([rows, x]), generator)
        assert isinstance(prior, GaussianMixture)
        g = prior.mu[0]  # [n + B, T]
        noise = (
            standard_normal(labels.y.shape, generator, x)
            * self.likelihood.noise_variance[labels.task].sqrt()
        )
        at_labels = g[inverse.view(labels.y.shape), labels.task]
        residual = (labels.y - at_labels - noise) * labels.mask  # [G, n]
        weights = torch.cholesky_solve(residual[..., None], condition.L)  # [G, n, 1]
        points, tasks = pair_with_tasks(x, self.covariance.n_tasks)
        K = self.covariance.matrix(labels.x, labels.task, points, tasks) * labels.mask[..., None]
        f = g[len(rows) :].T + (K * weights).sum(-2)  # [T, B]
        return GaussianMixture(f.T[None], prior.v[:, : len(x)])

    def predict_from(self, known: ExactGPCache, labels: Labels, x: Tensor) -> Predictive:
        """p(y* | x*, labels) in closed form, from labels and their cache ``known``."""
        return self.likelihood.predictive(*self._marginals(known, labels, x), None)

    def predict_f(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive:
        """p(y | f) at n draws of f, separately at every row of x [B, D]."""
        return self.predict_f_from(self.condition(), self.evidence, x, n, generator)

    def predict_f_from(
        self, known: ExactGPCache, labels: Labels, x: Tensor, n: int, generator: torch.Generator
    ) -> Predictive:
        """``predict_f`` from labels and their cache ``known``."""
        return predictive_at_draws(
            self.likelihood, *self._marginals(known, labels, x), n, generator
        )

    def _marginals(self, known: ExactGPCache, labels: Labels, x: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances of f at x given labels [1, T, B, 1]."""
        points, tasks = pair_with_tasks(x, self.covariance.n_tasks)
        # [T, n, B]
        K = self.covariance.matrix(labels.x, labels.task, points, tasks) * labels.mask[..., None]
        A = torch.linalg.solve_triangular(known.L, K, upper=False)  # L⁻¹ K_x*
        mean = (A * known.beta[..., None]).sum(-2) + self.mean(points, tasks)  # eq. (2.25)  [T, B]
        variance = self.covariance.variance(points, tasks) - A.square().sum(-2)  # eq. (2.26)
        floor = torch.finfo(variance.dtype).eps
        return mean[None, ..., None], variance.clamp_min(floor)[None, ..., None]
