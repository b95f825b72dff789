"""A finite mixture of Gaussians with its conjugate prior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.problems import Rows
from components.contracts.requirements import REAL_ROWS
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.cholesky import LOG_2PI, half_log_det
from components.maths.exponential.dirichlet import draw_log_dirichlet, log_normaliser
from components.maths.exponential.normal_wishart import NormalWishart
from components.maths.exponential.standard_draws import standard_uniform
from components.models.mixtures.mixture_ascent import MixtureAscent, MixtureExpectation
from components.problems.unlabelled import Unlabelled
from components.registry import register


@dataclass(frozen=True)
class MixtureParameters:
    """θ = (η, μ, ℓ) [S, K − 1 + KD + KD(D + 1)/2]: π = softmax(η, 0), means, and the lower triangle
    of each Λ = L Lᵀ, with log L_ii on the diagonal.  Parameters: π, means and standard deviations
    √(Λ⁻¹)_ii, with clusters ordered by their first mean."""

    alpha: float  # of the Dirichlet prior
    prior: NormalWishart  # of each cluster, without leading dimensions
    n_clusters: int

    @property
    def n_values(self) -> int:
        return self.prior.dim

    @property
    def dim(self) -> int:
        K = self.n_clusters
        D = self.n_values
        return K - 1 + K * D + K * D * (D + 1) // 2

    @cached_property
    def names(self) -> list[str]:
        K = range(1, self.n_clusters + 1)
        D = range(1, self.n_values + 1)
        each = [f"{parameter}{k}/{d}" for parameter in ("mu", "sd") for k in K for d in D]
        return [f"pi{k}" for k in K] + each

    @cached_property
    def dirichlet(self) -> Tensor:
        """α of each cluster [K]."""
        return self.prior.m.new_full((self.n_clusters,), self.alpha)

    def split(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log π [S, K], means [S, K, D] and L [S, K, D, D] with L Lᵀ = Λ."""
        K = self.n_clusters
        D = self.n_values
        eta, mu, lower = theta.split([K - 1, K * D, K * D * (D + 1) // 2], 1)
        log_pi = torch.cat([eta, theta.new_zeros(len(theta), 1)], 1).log_softmax(1)
        row, column = torch.tril_indices(D, D, device=theta.device)
        free = theta.new_zeros(len(theta), K, D, D)
        free[:, :, row, column] = lower.unflatten(1, (K, -1))
        L = free.tril(-1) + torch.linalg.diagonal(free).exp().diag_embed()
        return log_pi, mu.unflatten(1, (K, D)), L

    def join(self, log_pi: Tensor, mu: Tensor, L: Tensor) -> Tensor:
        """θ [S, P] from the output of ``split``."""
        D = self.n_values
        free = L.tril(-1) + torch.linalg.diagonal(L).log().diag_embed()
        row, column = torch.tril_indices(D, D, device=L.device)
        eta = log_pi[:, :-1] - log_pi[:, -1:]
        return torch.cat([eta, mu.flatten(1), free[:, :, row, column].flatten(1)], 1)

    def constrain(self, theta: Tensor) -> Tensor:
        log_pi, mu, L = self.split(theta)
        order = mu[:, :, 0].argsort(1)
        unit = torch.eye(self.n_values, dtype=L.dtype, device=L.device).expand_as(L)
        # of Λ⁻¹ = L⁻ᵀL⁻¹
        sd = torch.linalg.solve_triangular(L, unit, upper=False).square().sum(2).sqrt()
        mu, sd = (v.gather(1, order[..., None].expand_as(v)) for v in (mu, sd))
        return torch.cat([log_pi.exp().gather(1, order), mu.flatten(1), sd.flatten(1)], 1)

    def log_components(self, theta: Tensor, batch: Rows) -> Tensor:
        """log π_k N(x_b | μ_k, Λ_k⁻¹) [S, B, K]."""
        log_pi, mu, L = self.split(theta)
        pulled = torch.einsum("skbd,skde->skbe", batch.x - mu[:, :, None], L)
        log_det = half_log_det(L)  # ½ log |Λ|
        constant = log_pi + log_det - 0.5 * self.n_values * LOG_2PI
        return (constant[..., None] - 0.5 * pulled.square().sum(3)).mT

    def log_likelihood(self, theta: Tensor, batch: Rows) -> Tensor:
        return self.log_components(theta, batch).logsumexp(2)  # [S, B]

    def log_prior(self, theta: Tensor) -> Tensor:
        log_pi, mu, L = self.split(theta)
        D = self.n_values
        # |∂π/∂η| = Π π_k
        simplex = (self.dirichlet * log_pi).sum(1) + log_normaliser(self.dirichlet)
        power = torch.arange(
            D + 1, 1, -1, dtype=L.dtype, device=L.device
        )  # Λ = L Lᵀ, L_ii = e^ℓ: 2^D Π L_ii^(D + 2 − i)
        jacobian = (power * torch.linalg.diagonal(L).log()).sum(2) + D * math.log(2)
        return simplex + (self.prior.log_density(mu, L) + jacobian).sum(1)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return self.draw_given(self.dirichlet.expand(n, -1), self.expand_prior(n), generator)

    def expand_prior(self, n: int) -> NormalWishart:
        """The prior of K clusters, repeated n times [n, K]."""
        p = self.prior
        shape = (n, self.n_clusters)
        D = self.n_values
        return NormalWishart(
            p.m.expand(*shape, D),
            p.beta.expand(shape),
            p.V.expand(*shape, D, D),
            p.nu.expand(shape),
        )

    def draw_given(
        self, alpha: Tensor, clusters: NormalWishart, generator: torch.Generator
    ) -> Tensor:
        """θ [S, P] with π ~ Dir(α), α [S, K], and (μ_k, Λ_k) normal–Wishart [S, K]."""
        mu, L = clusters.draw(generator)
        return self.join(draw_log_dirichlet(alpha, generator), mu, L)

    def clusters(self, theta: Tensor, batch: Rows) -> Tensor:
        """p(z_b = k | θ, x_b), averaged over θ [S, P], with clusters ordered by their first mean:
        [B, K]."""
        order = self.split(theta)[1][:, :, 0].argsort(1)
        p = self.log_components(theta, batch).softmax(2)
        return p.gather(2, order[:, None].expand_as(p)).mean(0)


@dataclass(frozen=True)
class GaussianMixtureModule(MixtureParameters):
    """A mixture of K clusters, π ~ Dir(α, …, α)."""

    blocks: tuple[str, ...] = ("clusters",)

    def draw_block(
        self, block: str, theta: Tensor, batch: Rows, generator: torch.Generator
    ) -> Tensor:
        """z_b ~ p(z_b | θ, x_b), then π, μ, Λ ~ p(· | z, x), which leaves the posterior of θ
        invariant."""
        log_p = self.log_components(theta, batch)
        uniform = standard_uniform(log_p.shape, generator, log_p)
        clusters = (log_p - (-uniform.log()).log()).argmax(2)  # Gumbel-max trick
        z = torch.nn.functional.one_hot(clusters, self.n_clusters).to(log_p.dtype).mT  # [S, K, B]
        return self.draw_given(
            self.alpha + z.sum(2), self.expand_prior(len(theta)).posterior(z, batch.x), generator
        )

    def mean_field(self) -> MixtureAscent:
        return MixtureAscent(self.prior, self.n_clusters, self.dirichlet, self.draw_given)

    def point_masses(self, penalised: bool) -> MixtureExpectation:
        return MixtureExpectation(self.dirichlet, self.prior, penalised, self.join)


def cluster_prior(
    m: Tensor, variance: Tensor, factor: float, mean_rows: float, freedom: float | None
) -> NormalWishart:
    """NW(m, β, ν factor diag(variance), ν) for clusters of rows [D]; a null ν means D + 2.

    Raises:
        ConfigMismatchError: ν ≤ D − 1.
    """
    D = len(m)
    nu = float(D + 2) if freedom is None else freedom
    if nu <= D - 1:
        raise ConfigMismatchError(
            f"model.freedom={nu:g}: must exceed {D - 1} for rows of {D} values; raise it, or set it to null"
        )
    V = nu * factor * variance.diag()
    return NormalWishart(m, m.new_tensor(mean_rows), V, m.new_tensor(nu))


@register("model", "gaussian_mixture")
class GaussianMixtureModel(Model[Unlabelled, GaussianMixtureModule]):
    """A mixture of K Gaussians with a conjugate prior of weights, means and precisions.

    x ~ Σ_k π_k N(μ_k, Λ_k⁻¹), π ~ Dir(α, …, α), μ_k | Λ_k ~ N(m, (βΛ_k)⁻¹),
    Λ_k ~ Wishart(ν, V⁻¹), E Λ_k = ν V⁻¹. ``scale: data`` sets m to the mean of the training rows
    and V to ν times their variances over K^(2/D), so that K adjacent clusters have the width of the
    data; otherwise m = 0 and V = scale² ν I. Mean field is q(z) q(π, μ, Λ). A Gibbs sampler draws
    the labels and then all of θ. Parameters are ordered by the clusters' first means, independently
    of labels.

    Raises ConfigMismatchError for more clusters than rows, or ν ≤ D − 1.

    Source: Bishop (2006), section 10.2; Bardenet (2021), section 5.2.
    """

    requires = REAL_ROWS

    clusters: PositiveInt
    concentration: PositiveFloat
    mean_rows: PositiveFloat
    freedom: PositiveFloat | None
    scale: Literal["data"] | PositiveFloat

    def build(self, problem: Unlabelled, rng: Rng) -> GaussianMixtureModule:
        x = problem.train.x.flatten(1)
        N, D = x.shape
        if self.clusters > N:
            raise ConfigMismatchError(
                f"model.clusters={self.clusters}: dataset={problem.name} has only {N} training rows; lower it"
            )
        if self.scale == "data":
            m = x.mean(0)
            variance = x.var(0, correction=0) / self.clusters ** (2 / D)
            if not (variance > 0).all():
                raise ConfigMismatchError(
                    f"model.scale=data: a value of dataset={problem.name} is constant; set model.scale to a number"
                )
        else:
            m = x.new_zeros(D)
            variance = x.new_full((D,), self.scale**2)
        prior = cluster_prior(m, variance, 1.0, self.mean_rows, self.freedom)
        return GaussianMixtureModule(self.concentration, prior, self.clusters)
