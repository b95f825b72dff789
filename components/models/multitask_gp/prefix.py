"""Hyper-parameters learnt from a few labels, and predictions from all labels by a sparse
posterior."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.maths.cholesky import jittered_cholesky, triangular_inverse
from components.maths.spacing import row_numbers
from components.models.shallow_gp.exact import ExactGP
from components.models.shallow_gp.labels import Labels
from components.models.shallow_gp.prior import GPParts

CHUNK = 2_000  # points per chunk of covariances with the inducing pairs
BLOCKS = 8  # block rows of a triangular or symmetric product; the zero or mirrored half is skipped


@dataclass(frozen=True)
class SparseCache:
    """Summary of all labels for predictions."""

    weights: Tensor  # [M], mean = m(x) + K_xz weights
    reduction: Tensor  # P [M, M], variance = k(x, x) − K_xz P K_zx


def add_product(total: Tensor, A: Tensor) -> None:
    """Add A Aᵀ to the lower block triangle of ``total`` [M, M], in place; A [M, n]."""
    for rows in row_numbers(A).chunk(BLOCKS):
        first = int(rows[0])
        last = int(rows[-1]) + 1
        total[first:last, :last].addmm_(A[first:last], A[:last].mT)


def lower_product(L: Tensor, K: Tensor) -> Tensor:
    """L K for lower triangular L [M, M] and K [M, n]."""
    out = torch.empty_like(K)
    for rows in row_numbers(L).chunk(BLOCKS):
        first = int(rows[0])
        last = int(rows[-1]) + 1
        torch.mm(L[first:last, :last], K[:last], out=out[first:last])
    return out


class PrefixGP(ExactGP):
    """An exact GP of n labels with predictions from all N ≥ n labels, through M inducing pairs (z,
    t).

    The bound is log p(y₁ … y_n).  Predictions use the q(u) that maximises the sparse bound for all
    labels at the learnt hyper-parameters; D = diag(σ_t²), A = L⁻¹ K_zx D^−½, L Lᵀ = K_zz + j I, B =
    I + A Aᵀ:

        μ(x) = m(x) + K_xz L⁻ᵀ B⁻¹ A D^−½ (y − m),   σ²(x) = k(x, x) − K_xz P K_zx,
        P = L⁻ᵀ (I − B⁻¹) L⁻¹

    O(N M²) time in one pass over chunks of labels, O(M²) memory.  With the labels as inducing
    pairs, the posterior is exact.

    Source: Titsias (2009), eqs. (6) and (10); Hensman, Fusi and Lawrence (2013), section 2."""

    def __init__(self, parts: GPParts, learnt: Labels, labels: Labels, inducing: Labels):
        super().__init__(parts, learnt)
        self.all_labels = labels
        self.inducing = inducing

    @property
    def evidence(self) -> Labels:
        """All labels, on which predictions are conditioned."""
        return self.all_labels

    def cross_covariance(self, x: Tensor, task: Tensor) -> Tensor:
        """K_zx between the inducing pairs and points x [n, D], task [n]: [M, n]."""
        z = self.inducing
        return self.covariance.matrix(z.x, z.task, x[None], task[None])[0]

    @torch.no_grad()
    def condition_on(self, labels: Labels) -> SparseCache:  # type: ignore[override]
        """q(u) given labels in one group, without padding."""
        z = self.inducing
        K = self.covariance.matrix(z.x, z.task, z.x, z.task)[0]
        whiten = triangular_inverse(jittered_cholesky(K, self.jitter, "K_zz")[0])
        del K
        B = torch.eye(len(whiten), dtype=whiten.dtype, device=whiten.device)
        moment = whiten.new_zeros(len(whiten))  # A D^−½ (y − m)
        points = (labels.x[0], labels.y[0], labels.task[0])
        for x, y, task in zip(*(part.split(CHUNK) for part in points), strict=True):
            precision = self.likelihood.noise_variance[task].rsqrt()
            A = lower_product(whiten, self.cross_covariance(x, task)).mul_(precision)
            residual = y - self.mean(x[None], task[None])
            moment += A @ (residual.reshape(-1) * precision)
            add_product(B, A)
        factor = torch.linalg.cholesky(B)  # reads the lower triangle; B ≥ I
        weights = whiten.mT @ torch.cholesky_solve(moment[:, None], factor)[:, 0]
        gain = torch.cholesky_inverse(factor).neg_()
        del B, factor
        gain.diagonal().add_(1.0)  # I − B⁻¹
        return SparseCache(weights, whiten.mT @ (gain @ whiten))

    def _marginals(  # type: ignore[override]
        self, known: SparseCache, labels: Labels, x: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Means and variances of f at x given labels [1, T, B, 1]."""
        means = []
        variances = []
        for t in range(self.covariance.n_tasks):
            task = torch.full((len(x),), t, device=x.device)
            K = self.cross_covariance(x, task)
            mean = known.weights @ K + self.mean(x[None], task[None])
            prior = self.covariance.variance(x[None], task[None])[0]
            means.append(mean.reshape(-1))
            variances.append(prior - (K * (known.reduction @ K)).sum(0))
        variance = torch.stack(variances)
        floor = torch.finfo(variance.dtype).eps
        return torch.stack(means)[None, ..., None], variance.clamp_min(floor)[None, ..., None]
