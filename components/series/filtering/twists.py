"""Functions ψ of the state, which twist the transition of a filter.

log ψ_t(x) = log(exp(−½ uᵀM_t u) + c) with u = (1, x − m_t).

Source: Guarniero, Johansen & Lee (2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from components.maths.exponential.standard_draws import standard_uniform
from components.maths.particles.draws import standard_normal_like
from components.series.models.linear_gaussian_ssm import factor

RIDGE = 1e-9  # of the normal equations, as a share of the number of particles


@dataclass
class Twist:
    """ψ of one time; float64."""

    M: Tensor  # [R, dx + 1, dx + 1]
    m: Tensor  # [R, 1, dx]
    c: Tensor  # [R, 1]

    def augment(self, x: Tensor) -> Tensor:
        """(1, x − m) of x [R, N, dx]; [R, N, dx + 1]."""
        return pad(x.double() - self.m, (1, 0), value=1.0)

    def log_value(self, x: Tensor) -> Tensor:
        return torch.logaddexp(_square(self.augment(x), self.M), self.c.log())  # [R, N]


class TwistedNormal:
    """N(μ, Q) ψ / f̃, f̃ = ∫ N(x; μ, Q) ψ(x) dx, by x = μ + L ε, with ε from a mixture of a
    Gaussian, weighted by its share of f̃, and N(0, I)."""

    def __init__(self, psi: Twist, mu: Tensor, Q: Tensor):
        self.mu = mu.double()  # [R, N, dx]
        self.L = factor(Q, "Q").double().expand(len(mu), -1, -1)
        u = psi.augment(mu)
        H = psi.M[:, :, 1:] @ self.L
        self.root = factor(torch.eye(len(H[0, 0])).to(H) + self.L.mT @ H[:, 1:], "the proposal")
        gain = torch.cholesky_solve(H.mT, self.root)
        scale = torch.linalg.diagonal(self.root).log().sum(1, keepdim=True)
        log_part = _square(u, psi.M - H @ gain) - scale
        self.log_mean = torch.logaddexp(log_part, psi.c.log())  # log f̃ [R, N]
        self.share = (log_part - self.log_mean).exp()
        self.centre = -u @ gain.mT  # of ε [R, N, dx]

    def draw(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        """A draw for the parent ``rows`` [R, N] of each particle; [R, N, dx]."""
        index = rows.unsqueeze(2).expand_as(self.mu)
        z = standard_normal_like(self.mu, generator)
        u = standard_uniform(rows.shape, generator, z)
        is_guided = (u < self.share.gather(1, rows)).unsqueeze(2)
        scaled = torch.linalg.solve_triangular(self.root, z, upper=False, left=False)
        noise = torch.where(is_guided, self.centre.gather(1, index) + scaled, z)
        return self.mu.gather(1, index) + noise @ self.L.mT


def fit_log_quadratic(x: Tensor, log_psi: Tensor) -> Twist:
    """ψ with c = 0 by least squares of log ψ^n, over the half with the largest ψ^n; their maximum
    is 1.

    x [R, N, dx], log ψ [R, N].  Negative eigenvalues of the curvature become 0, and N(0, I) ψ has
    its centre among the standardised particles.
    """
    m = x.mean(1, keepdim=True)
    scale = pad(x.std(1, keepdim=True).clamp(min=1e-12), (1, 0), value=1.0)
    u = pad(x - m, (1, 0), value=1.0) / scale
    i, j = torch.triu_indices(u.shape[2], u.shape[2])
    largest = log_psi >= log_psi.median(1, keepdim=True).values
    y = torch.where(largest, log_psi - log_psi.amax(1, keepdim=True), 0.0).unsqueeze(2)
    features = u[..., i] * u[..., j] * largest.unsqueeze(2)
    gram = features.mT @ features + RIDGE * x.shape[1] * torch.eye(len(i)).to(x)
    M = (scale.mT @ scale).zero_()
    M[:, i, j] = -torch.linalg.solve(gram, features.mT @ y).squeeze(2)
    M = M + M.mT
    values, vectors = torch.linalg.eigh(M[:, 1:, 1:])
    values = values.clamp(min=0).unsqueeze(1)
    M[:, 1:, 1:] = vectors * values @ vectors.mT
    centre = vectors / (1 + values) @ vectors.mT @ M[:, 1:, :1]
    reach = u.norm(dim=2).amax(1).view(-1, 1, 1) / centre.norm(dim=1, keepdim=True)
    M[:, 1:, :1] *= reach.clamp(max=1)
    M[:, :1, 1:] = M[:, 1:, :1].mT
    return Twist(M / (scale.mT @ scale), m, x.new_zeros(len(x), 1))


def _square(u: Tensor, M: Tensor) -> Tensor:
    return -0.5 * (u @ M * u).sum(2)
