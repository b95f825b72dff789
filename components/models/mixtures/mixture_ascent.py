"""Mean field and expectation maximisation of mixtures of Gaussians."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities.mean_field import Factors
from components.contracts.problems import Rows
from components.errors import NumericalError
from components.maths.cholesky import LOG_2PI, half_log_det
from components.maths.exponential.dirichlet import expected_log, kl_dirichlet, log_normaliser
from components.maths.exponential.normal_wishart import NormalWishart


def nearest_centre(x: Tensor, n: int, n_clusters: int, generator: torch.Generator) -> Tensor:
    """Responsibilities of 0 and 1 [n, K, B] for n starts: K rows drawn as centres, each far from
    the previous ones (k-means++).

    Source: Arthur and Vassilvitskii (2007)."""
    every = []
    for _ in range(n):
        square = x.new_ones(1, len(x))  # to the centres so far [k, B]
        for k in range(n_clusters):
            weights = square.amin(0)
            weights = weights if float(weights.sum()) > 0 else torch.ones_like(weights)
            centre = torch.multinomial(weights.to(generator.device), 1, generator=generator).to(
                x.device
            )
            away = (x - x[centre]).square().sum(1)[None]
            square = away if k == 0 else torch.cat([square, away])
        every.append(torch.nn.functional.one_hot(square.argmin(0), n_clusters).to(x.dtype).mT)
    return torch.stack(every)


def cluster_posterior(factors: Factors) -> NormalWishart:
    """q(μ_k, Λ_k) of each cluster [S, K]."""
    return NormalWishart(factors["m"], factors["beta"], factors["V"], factors["nu"])


def cluster_factors(posterior: NormalWishart) -> Factors:
    """Factors of q(μ_k, Λ_k), as input of ``cluster_posterior``."""
    return {"m": posterior.m, "beta": posterior.beta, "V": posterior.V, "nu": posterior.nu}


@dataclass(frozen=True)
class AssignmentAscent:
    """q(z) q(weights) Π_k q(μ_k, Λ_k) = Π_b Cat(z_b | r_b) q(weights) Π_k NW(μ_k, Λ_k | m_k, β_k,
    V_k, ν_k); subclasses add the weights.

    Factors m, beta, V, nu of the K clusters for S starts, and factors of the weights."""

    prior: NormalWishart  # of each cluster
    n_clusters: int

    def optimal_factors(self, r: Tensor, batch: Rows) -> Factors:
        """Optimal factors of θ given responsibilities r [S, K, B]."""
        raise NotImplementedError

    def expected_log_weights(self, factors: Factors) -> Tensor:
        """E log π [S, K]."""
        raise NotImplementedError

    def log_mean_weights(self, factors: Factors) -> Tensor:
        """log E π [S, K]."""
        raise NotImplementedError

    def weight_divergence(self, factors: Factors) -> Tensor:
        """KL of q(weights) from the prior [S]."""
        raise NotImplementedError

    def start(self, batch: Rows, n: int, generator: torch.Generator) -> Factors:
        """Initial factors: optimal for rows assigned to the nearest of K centres, drawn by
        k-means++."""
        r = nearest_centre(batch.x.flatten(1), n, self.n_clusters, generator)
        return self.optimal_factors(r, batch)

    def _log_rho(self, factors: Factors, batch: Rows) -> Tensor:
        """E log π_k N(x_b | μ_k, Λ_k⁻¹) [S, K, B]."""
        each = cluster_posterior(factors).expected_log_density(batch.x.flatten(1))
        return self.expected_log_weights(factors)[..., None] + each

    def cycle(self, factors: Factors, batch: Rows) -> Factors:
        return self.optimal_factors(self._log_rho(factors, batch).softmax(1), batch)

    def objective(self, factors: Factors, batch: Rows) -> Tensor:
        """Σ_b log Σ_k ρ_bk, the bound at the optimal q(z), minus the divergences of the other
        factors."""
        of_rows = self._log_rho(factors, batch).logsumexp(1).sum(1)
        of_clusters = cluster_posterior(factors).kl(self.prior).sum(1)
        return of_rows - self.weight_divergence(factors) - of_clusters

    def log_predictive(self, factors: Factors, batch: Rows) -> Tensor:
        """Log density of a mixture of Student's t with weights E π."""
        each = cluster_posterior(factors).log_predictive(batch.x.flatten(1))
        return (self.log_mean_weights(factors)[..., None] + each).logsumexp(1)

    def responsibilities(self, factors: Factors, batch: Rows) -> Tensor:
        return self._log_rho(factors, batch).softmax(1).mT


@dataclass(frozen=True)
class MixtureAscent(AssignmentAscent):
    """q(z) q(π) Π_k q(μ_k, Λ_k) with q(π) = Dir(π | α).

    Factors: alpha, beta, nu [S, K], m [S, K, D], V [S, K, D, D].

    Source: Bishop (2006), eqs. (10.46) to (10.63), (10.81)."""

    concentration: Tensor  # α of the prior [K]
    draw_given: Callable[[Tensor, NormalWishart, torch.Generator], Tensor]

    def optimal_factors(self, r: Tensor, batch: Rows) -> Factors:
        posterior = self.prior.posterior(r, batch.x.flatten(1))
        return {"alpha": self.concentration + r.sum(2), **cluster_factors(posterior)}

    def expected_log_weights(self, factors: Factors) -> Tensor:
        return expected_log(factors["alpha"])

    def log_mean_weights(self, factors: Factors) -> Tensor:
        return (factors["alpha"] / factors["alpha"].sum(1, keepdim=True)).log()

    def weight_divergence(self, factors: Factors) -> Tensor:
        return kl_dirichlet(factors["alpha"], self.concentration)

    def draw(self, factors: Factors, n: int, generator: torch.Generator) -> Tensor:
        first = {name: v[:1].expand(n, *v.shape[1:]) for name, v in factors.items()}
        return self.draw_given(first["alpha"], cluster_posterior(first), generator)


@dataclass(frozen=True)
class MixtureExpectation:
    """Expectation maximisation: q(π, μ, Λ) a point mass; factors log_pi [S, K], mu [S, K, D],
    covariance [S, K, D, D].

    Penalised by the prior density of (π, μ, Λ): π_k ∝ α + N_k − 1, Λ_k⁻¹ = V_k/(ν_k − D).  Not
    penalised: responsibility-weighted shares, means and covariances of the rows.

    Raises NumericalError if a covariance becomes singular or a weight negative.

    Source: Bishop (2006), section 9.2; Fraley and Raftery (2007) for the penalised form; Bardenet
    (2021), section 5.2.3."""

    concentration: Tensor
    prior: NormalWishart
    penalised: bool
    joined: Callable[[Tensor, Tensor, Tensor], Tensor]

    def _optimal_factors(self, r: Tensor, batch: Rows) -> Factors:
        x = batch.x.flatten(1)
        N = r.sum(2)  # [S, K]
        if self.penalised:
            mu, covariance = self.prior.posterior(r, x).mode()
            share = N + self.concentration - 1
        else:
            mu = (r @ x) / N[..., None]
            centred = x - mu[:, :, None]
            covariance = ((r[..., None] * centred).mT @ centred) / N[..., None, None]
            share = N
        covariance = 0.5 * (covariance + covariance.mT)
        if (torch.linalg.cholesky_ex(covariance)[1] > 0).any() or not (share > 0).all():
            raise NumericalError(
                "a cluster has collapsed onto too few rows, because the likelihood of a mixture is unbounded",
                "set inference.penalised=true with model.concentration > 1, or lower model.clusters",
            )
        return {
            "log_pi": (share / share.sum(1, keepdim=True)).log(),
            "mu": mu,
            "covariance": covariance,
        }

    def start(self, batch: Rows, n: int, generator: torch.Generator) -> Factors:
        """Initial factors: shares and means of the rows nearest to each of K centres, drawn by
        k-means++, and the covariance of all rows."""
        x = batch.x.flatten(1)
        r = nearest_centre(x, n, len(self.concentration), generator)
        N = r.sum(2).clamp_min(1)
        centred = x - x.mean(0)
        covariance = (centred.T @ centred / len(x)).expand(*r.shape[:2], -1, -1)
        if (torch.linalg.cholesky_ex(covariance)[1] > 0).any():
            raise NumericalError(
                "the covariance of the training rows is singular",
                "remove collinear values",
            )
        return {
            "log_pi": (N / N.sum(1, keepdim=True)).log(),
            "mu": r @ x / N[..., None],
            "covariance": covariance,
        }

    def _root(self, factors: Factors) -> Tensor:
        """R [S, K, D, D] lower triangular with R Rᵀ = Λ⁻¹."""
        return torch.linalg.cholesky(factors["covariance"])

    def _log_rho(self, factors: Factors, batch: Rows) -> Tensor:
        R = self._root(factors)
        D = self.prior.dim
        centred = batch.x.flatten(1) - factors["mu"][:, :, None]
        unit = torch.linalg.solve_triangular(R, centred.mT, upper=False)
        log_det = half_log_det(R)
        constant = factors["log_pi"] - log_det - 0.5 * D * LOG_2PI
        return constant[..., None] - 0.5 * unit.square().sum(2)

    def cycle(self, factors: Factors, batch: Rows) -> Factors:
        return self._optimal_factors(self._log_rho(factors, batch).softmax(1), batch)

    def _precision_root(self, factors: Factors) -> Tensor:
        """L lower triangular with L Lᵀ = Λ."""
        return torch.linalg.cholesky(torch.cholesky_inverse(self._root(factors)))

    def objective(self, factors: Factors, batch: Rows) -> Tensor:
        value = self._log_rho(factors, batch).logsumexp(1).sum(1)
        if not self.penalised:
            return value
        simplex = log_normaliser(self.concentration) + (
            (self.concentration - 1) * factors["log_pi"]
        ).sum(1)
        return (
            value
            + simplex
            + self.prior.log_density(factors["mu"], self._precision_root(factors)).sum(1)
        )

    def draw(self, factors: Factors, n: int, generator: torch.Generator) -> Tensor:
        theta = self.joined(factors["log_pi"], factors["mu"], self._precision_root(factors))
        return theta[:1].expand(n, -1)

    def log_predictive(self, factors: Factors, batch: Rows) -> Tensor:
        return self._log_rho(factors, batch).logsumexp(1)

    def responsibilities(self, factors: Factors, batch: Rows) -> Tensor:
        return self._log_rho(factors, batch).softmax(1).mT
