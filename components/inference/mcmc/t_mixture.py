"""Mixtures of multivariate t distributions, and their fit to a target by population Monte Carlo."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.errors import NumericalError
from components.inference.chains import ModelBatch
from components.inference.log_joint import finite_log_joint
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal

NEGLIGIBLE = 1e-3  # weight below which a component is dropped


@dataclass(frozen=True)
class TMixture:
    """q(θ) = Σ_d α_d t_ν(θ; μ_d, L_d L_dᵀ), d = 1 … D; Gaussian if ν is infinite."""

    weights: Tensor  # α [D]
    centres: Tensor  # μ [D, P]
    factors: Tensor  # L [D, P, P], of any shape with L Lᵀ = Σ
    dof: float  # ν

    @torch.no_grad()
    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """θ ~ q [n, P]."""
        d = self.weights.new_zeros(n, dtype=torch.long)
        if len(self.weights) > 1:
            d = torch.multinomial(self.weights, n, replacement=True, generator=generator)
        z = standard_normal((n, self.centres.shape[1]), generator, self.centres)
        if math.isfinite(self.dof):
            halves = z.new_full((n, 1), self.dof / 2)
            z = z * (self.dof / (2 * torch._standard_gamma(halves, generator=generator))).sqrt()
        return self._place(z, d)

    def _place(self, z: Tensor, d: Tensor) -> Tensor:
        """μ_d + L_d z [n, P] for the components d [n]."""
        return self.centres[d] + (self.factors[d] @ z.unsqueeze(2)).squeeze(2)

    @property
    def n_uniforms(self) -> int:
        """Number of uniform numbers for one draw."""
        D, P = self.centres.shape
        return P + (D > 1) + math.isfinite(self.dof)

    @torch.no_grad()
    def from_uniforms(self, u: Tensor) -> Tensor:
        """θ [n, P] from uniform numbers [n, n_uniforms] in (0, 1): P for the inverse normal
        distribution function, then one each for χ² and for the component if needed."""
        D, P = self.centres.shape
        nu = self.dof
        z: Tensor = torch.special.ndtri(u[:, :P])
        if math.isfinite(nu):
            from scipy import special  # slow to import

            chi2 = 2 * special.gammaincinv(nu / 2, u[:, P : P + 1].double().cpu().numpy())
            z = z * (nu / torch.as_tensor(chi2).to(z)).sqrt()
        d = self.weights.new_zeros(len(u), dtype=torch.long)
        if D > 1:
            d = torch.searchsorted(self.weights.cumsum(0), u[:, -1].contiguous()).clamp_max(D - 1)
        return self._place(z, d)

    @torch.no_grad()
    def terms(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """log α_d t_d(θ) and the squared Mahalanobis distances δ_d(θ)² of θ [n, P], both [n, D]."""
        inverse, _ = self._inverse
        # [n, D]
        square = ((theta.unsqueeze(0) - self.centres.unsqueeze(1)) @ inverse.mT).square().sum(2).T
        return self.log_terms(square), square

    def log_terms(self, square: Tensor) -> Tensor:
        """log α_d t_d at squared Mahalanobis distances, both [n, D]."""
        nu = self.dof
        P = self.centres.shape[1]
        _, log_det = self._inverse
        if math.isfinite(nu):
            constant = (
                math.lgamma((nu + P) / 2) - math.lgamma(nu / 2) - 0.5 * P * math.log(nu * math.pi)
            )
            log_t = constant - log_det - 0.5 * (nu + P) * (square / nu).log1p()
        else:
            log_t = -0.5 * square - 0.5 * P * LOG_2PI - log_det
        return self.weights.log() + log_t

    @cached_property
    def _inverse(self) -> tuple[Tensor, Tensor]:
        """L⁻¹ [D, P, P] and log |det L| [D]."""
        return torch.linalg.inv(self.factors), torch.linalg.slogdet(self.factors).logabsdet

    def log_prob(self, theta: Tensor) -> Tensor:
        """log q(θ) [n], normalised, of θ [n, P]."""
        return self.terms(theta)[0].logsumexp(1)


def spread(start: TMixture, components: int, generator: torch.Generator) -> TMixture:
    """D equal components with the shape of the single component of ``start``, at its centre and at
    D − 1 draws from it."""
    centres = torch.cat([start.centres, start.draw(components - 1, generator)])
    factors = start.factors.expand(components, -1, -1).clone()
    return TMixture(centres.new_full((components,), 1 / components), centres, factors, start.dof)


def fit_mixture(
    model: LogJoint,
    batch: ModelBatch,
    start: TMixture,
    components: int,
    rounds: int,
    draws: int,
    generator: torch.Generator,
) -> TMixture:
    """A mixture of D components after the given rounds of population Monte Carlo, each with
    ``draws`` draws of the previous mixture.

    Raises NumericalError if all draws of a round have zero density.

    Source: Cappé et al. (2008), section 4 (mixtures of t distributions)."""
    anchor = (start.factors @ start.factors.mT)[0]
    q = spread(start, components, generator)
    for _ in range(rounds):
        theta = q.draw(draws, generator)
        log_weight = finite_log_joint(model, theta, batch) - q.log_prob(theta)
        if not torch.isfinite(log_weight).any():
            raise NumericalError(
                f"log density is not finite at any of {draws} draws of the proposal",
                "raise inference.pilot, or use inference.proposal=student_t",
            )
        q = update_mixture(q, theta, truncate_weights(log_weight), anchor)
    return q


def truncate_weights(log_weight: Tensor) -> Tensor:
    """Normalised weights [n], truncated at √n times their mean: otherwise a first proposal that
    misses most of the target would be replaced by its single best draw.

    Source: Ionides (2008), section 2."""
    n = len(log_weight)
    most = log_weight.logsumexp(0) - 0.5 * math.log(n)
    return log_weight.clamp(max=float(most)).softmax(0)


def update_mixture(q: TMixture, theta: Tensor, weights: Tensor, anchor: Tensor) -> TMixture:
    """One round: q with a smaller Kullback–Leibler divergence from the target, from weighted draws
    of the previous q.

        ρ_d(θ) = α_d t_d(θ)/q(θ),   u_d(θ) = (ν + P)/(ν + δ_d(θ)²),   w̄_t the normalised weights,
        α_d := Σ_t w̄_t ρ_d(θ_t),    μ_d := Σ_t w̄_t ρ_d u_d θ_t / Σ_t w̄_t ρ_d u_d,
        Σ_d := Σ_t w̄_t ρ_d u_d (θ_t − μ_d)(θ_t − μ_d)ᵀ / α_d

    Unlike in the source, Σ_d is shrunk towards the weighted covariance of all draws by P/(P + n_d),
    n_d its effective number of draws, and that covariance likewise towards ``anchor`` [P, P], which
    prevents singular components; components of negligible weight are dropped.  θ [n, P], w̄ [n].

    Raises NumericalError if a component has no factor because of rounding.

    Source: Cappé et al. (2008), section 4."""
    nu = q.dof
    P = theta.shape[1]
    terms, square = q.terms(theta)
    shared = weights.unsqueeze(1) * terms.softmax(1)  # w̄ ρ [n, D]
    alpha = shared.sum(0)
    stays = alpha > min(NEGLIGIBLE, float(alpha.max()) / 2)
    shared = shared[:, stays]
    square = square[:, stays]
    alpha = alpha[stays]
    near = shared * ((nu + P) / (nu + square) if math.isfinite(nu) else 1.0)  # w̄ ρ u [n, D]
    centres = (near.T @ theta) / near.sum(0).unsqueeze(1)
    gaps = theta.unsqueeze(0) - centres.unsqueeze(1)  # [D, n, P]
    covariances = (gaps.mT * near.T.unsqueeze(1)) @ gaps / alpha[:, None, None]  # [D, P, P]
    centred = theta - weights @ theta
    pooled = (centred.T * weights) @ centred
    few = P / (P + 1 / weights.square().sum())
    pooled = (1 - few) * pooled + few * anchor
    few = (P / (P + alpha.square() / shared.square().sum(0)))[:, None, None]
    factors, info = torch.linalg.cholesky_ex((1 - few) * covariances + few * pooled)
    if info.any():
        raise NumericalError(
            "a component of the proposal has a covariance without Cholesky factor",
            "raise inference.pilot, lower inference.components, or use inference.proposal=student_t",
        )
    # contiguous: LAPACK returns column-major, a checkpoint loads row-major, and BLAS rounding
    # depends on layout
    return replace(q, weights=alpha / alpha.sum(), centres=centres, factors=factors.contiguous())
