"""Power expectation propagation for regressions with one linear predictor."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

import numpy as np
import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from components.contracts.capabilities import GaussianPrior, LogJoint
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import AboveZeroToOne, Inference, Info, ZeroToOne
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError, NumericalError
from components.inference.chains import INDEPENDENT_CHAINS, NEEDS_TO_PREDICT
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal
from components.posteriors.variational import RefinedPosterior
from components.problems.supervised import Supervised
from components.registry import register

PROBE = 0.1  # multiple of the prior's standard deviations at which row directions are computed
ROUNDS = 20  # maximum iterations that move the nodes to the mass of a tilted distribution
CLOSE = 1e-6  # change of its moments, in standard deviations, at which they stop
NARROWER = 0.3  # smallest ratio of the standard deviations of two iterations
PARALLEL = 1e-6  # largest 1 − |cos| between two gradients of a row with one linear predictor


class RowMarginals(NamedTuple):
    """q(θ) = N(m, V), and its N marginals of u_n = a_nᵀθ."""

    mean: Tensor  # m [P]
    chol: Tensor  # L of the precision Λ = L Lᵀ [P, P]
    va: Tensor  # V a_n [N, P]
    mu: Tensor  # a_nᵀ m [N]
    v: Tensor  # a_nᵀ V a_n [N]


class Tilted(NamedTuple):
    """Cavities N(h/c, 1/c) of u_n, with quadrature nodes and the log-likelihoods of rows there."""

    c: Tensor  # [N]
    h: Tensor  # [N]
    u: Tensor  # [N, G]
    log_w: Tensor  # log weights of E_cavity [N, G]
    ell: Tensor  # log p(y_n | u) [N, G]


@dataclass(kw_only=True)
class PowerEPState:
    """Sites f̃_n(θ) = exp(ν_n u_n − ½ τ_n u_n²) of N rows."""

    tau: Tensor  # [N]
    nu: Tensor  # [N]
    a: Tensor = not_checkpointed()  # directions of the rows [N, P]
    rows: list[int] = not_checkpointed()  # of the training batch; True where labelled
    prior_precision: Tensor = not_checkpointed()  # [P]
    base: Tensor = not_checkpointed()  # standard normal noise of the draws [2, draws, P]
    model: LogJoint = not_checkpointed()
    train: Batch = not_checkpointed()


def log_normaliser(h: Tensor, c: Tensor) -> Tensor:
    """log ∫ exp(h u − ½ c u²) du."""
    return 0.5 * (LOG_2PI - c.log() + h.square() / c)


@register("inference", "power_ep")
class PowerEP(Inference[LogJoint, Supervised, Batch, PowerEPState]):
    """Power expectation propagation: a full-covariance Gaussian with one factor f̃_n for each row.

        L = log Z_q − log Z_p + α⁻¹ Σ_n log E_q[(p(y_n|θ) / f̃_n(θ))^α],   q ∝ p Π_n f̃_n
        f̃_n(θ) = exp(ν_n u_n − ½ τ_n u_n²),   u_n = a_nᵀθ
        q ← the Gaussian with the moments of q f̃_n^{−α} p(y_n|θ)^α,   for every n

    L is stationary if all tilted distributions have the moments of q.  α = 1 is
    expectation propagation, α = 0 variational inference with the sites τ_n = −E_q[∂²_u log
    p(y_n|u)] and ν_n = E_q[∂_u log p(y_n|u)] + τ_n E_q[u].  A step updates all sites from the same
    q, moving the fraction ``damping`` of the way.  The method applies to models with a Gaussian
    prior in which a row depends on θ through one linear predictor (linear regression with known
    noise, logistic and probit regression).  Moments of u_n use adaptive Gauss–Hermite quadrature.
    In a linear regression q is exact for every α, and L = log p(y).  Info: ``objective`` (L; for α
    = 0 a bound, ``elbo``) and ``change``, the largest change of a site in units of q's precision.

    Raises:
        ConfigMismatchError: the prior is not Gaussian, or a row depends on several linear
        predictors.
        NumericalError: a cavity has no positive variance.

    Source: Minka (2004), Power EP; Rodríguez Santana and Hernández-Lobato (2020), eq. (21).
    """

    requires = Requirements(
        kinds={"supervised"},
        batch_kind="whole",
        capabilities={LogJoint, GaussianPrior},
        capabilities_by_kind=NEEDS_TO_PREDICT,
    )
    mixes = False  # independent draws of a fit

    alpha: ZeroToOne
    damping: AboveZeroToOne
    nodes: Annotated[int, Field(ge=5, le=200)]
    draws: PositiveInt

    def init(self, model: LogJoint, problem: Supervised, rng: Rng) -> PowerEPState:
        prior_std = model.gaussian_prior() if isinstance(model, GaussianPrior) else None
        if prior_std is None:
            raise ConfigMismatchError(
                f"inference={self.name}: the prior of the model is not a Gaussian with known variances; "
                "use model.prior=gaussian (logistic_regression) or a number as model.noise (linear_regression)"
            )
        a = self._directions(model, problem, prior_std, rng)
        rows = (a != 0).any(1).nonzero().flatten()
        base = standard_normal((INDEPENDENT_CHAINS, self.draws, len(prior_std)), rng.init, a)
        return PowerEPState(
            tau=a.new_zeros(len(rows)),
            nu=a.new_zeros(len(rows)),
            a=a[rows],
            rows=rows.tolist(),
            prior_precision=prior_std.pow(-2),
            base=base,
            model=model,
            train=problem.train,
        )

    def _directions(
        self, model: LogJoint, problem: Supervised, prior_std: Tensor, rng: Rng
    ) -> Tensor:
        """a_n [N, P], the direction of ∇_θ log p(y_n | θ), which is the same for all θ; 0 for rows
        without a label."""
        probes = PROBE * prior_std * standard_normal((2, len(prior_std)), rng.init, prior_std)

        def rows_at(theta: Tensor) -> Tensor:
            return model.log_likelihood(theta[None], problem.train)[0]

        jacobian = torch.autograd.functional.jacobian
        first, second = (jacobian(rows_at, theta) for theta in probes)  # [N, P]
        cosine = torch.cosine_similarity(first, second, dim=1).abs()
        is_informative = (first != 0).any(1) & (second != 0).any(1)
        if not problem.train.mask.any() or bool((1 - cosine[is_informative] > PARALLEL).any()):
            raise ConfigMismatchError(
                f"inference={self.name}: a row of this model does not depend on the parameters "
                f"through one linear predictor; use model=logistic_regression (two classes), "
                f"probit_regression, linear_regression, or inference=bb_alpha"
            )
        return torch.nn.functional.normalize(first, dim=1)

    def gaussians(self, state: PowerEPState) -> RowMarginals:
        """q for the given sites, Λ = diag(s⁻²) + Σ_n τ_n a_n a_nᵀ."""
        a = state.a
        chol = torch.linalg.cholesky(state.prior_precision.diag() + a.T @ (state.tau[:, None] * a))
        mean = torch.cholesky_solve((a.T @ state.nu)[:, None], chol)[:, 0]
        va = torch.cholesky_solve(a.T, chol).T
        return RowMarginals(mean, chol, va, a @ mean, (va * a).sum(1))

    def tilt(self, state: PowerEPState, q: RowMarginals) -> Tilted:
        """Cavities q f̃_n^{−α} of u_n, with likelihoods at nodes that cover the tilted mass.

        Gauss–Hermite nodes begin at q and move to the moments of the tilted distribution.
        """
        c = 1 / q.v - self.alpha * state.tau
        h = q.mu / q.v - self.alpha * state.nu
        if not bool((c > 0).all()):
            raise NumericalError(
                f"a cavity has precision {float(c.min()):.3g}",
                "lower inference.damping or inference.alpha",
            )
        nodes, weights = map(c.new_tensor, np.polynomial.hermite_e.hermegauss(self.nodes))
        log_w = weights.log() - math.log(math.sqrt(2 * math.pi))  # of N(0, 1) [G]
        mean, sd = q.mu, q.v.sqrt()
        for _ in range(ROUNDS):
            u = mean[:, None] + sd[:, None] * nodes
            # cavity over N(mean, sd²) at the nodes
            log_ratio = log_w + (h[:, None] * u - 0.5 * c[:, None] * u.square())
            log_ratio = log_ratio - log_normaliser(h, c)[:, None] + sd.log()[:, None]
            log_ratio = log_ratio + 0.5 * (nodes.square() + LOG_2PI)
            tilted = Tilted(c, h, u, log_ratio, self._rows_at(state, q, u))
            if self.alpha == 0:  # the cavity is q
                return tilted
            new_mean, variance = self._moments(tilted)
            new_sd = torch.maximum(variance.sqrt(), NARROWER * sd)
            change = torch.maximum((new_mean - mean).abs(), (new_sd - sd).abs()) / new_sd
            mean, sd = new_mean.detach(), new_sd.detach()
            if float(change.max()) < CLOSE:
                break
        return tilted

    def _rows_at(self, state: PowerEPState, q: RowMarginals, u: Tensor) -> Tensor:
        """log p(y_n | u) [N, G] at values of u_n, reached by moving θ from m along V a_n."""
        slopes = (u - q.mu[:, None]) / q.v[:, None]
        ell = [
            state.model.log_likelihood(q.mean + s[:, None] * va, state.train.part(slice(b, b + 1), 1.0))[:, 0]
            for b, s, va in zip(state.rows, slopes, q.va, strict=True)
        ]  # fmt: skip
        return torch.stack(ell)

    def _moments(self, tilted: Tilted) -> tuple[Tensor, Tensor]:
        """Means and variances of the tilted distributions [N]."""
        w = (tilted.log_w + self.alpha * tilted.ell).softmax(1)
        mean = (w * tilted.u).sum(1)
        return mean, (w * (tilted.u - mean[:, None]).square()).sum(1)

    def sites(self, q: RowMarginals, tilted: Tilted) -> tuple[Tensor, Tensor]:
        """τ, ν [N] of the sites for which q has the moments of the tilted distributions."""
        if self.alpha == 0:
            w = tilted.log_w.exp()
            z = (tilted.u - q.mu[:, None]) * q.v.rsqrt()[:, None]
            slope = (w * z * tilted.ell).sum(1) * q.v.rsqrt()  # E[∂ℓ] = E[z ℓ]/√v
            # E[∂²ℓ] = E[(z² − 1) ℓ]/v
            tau = -(w * (z.square() - 1) * tilted.ell).sum(1) / q.v
            return tau, slope + tau * q.mu
        mean, variance = self._moments(tilted)
        return (1 / variance - tilted.c) / self.alpha, (mean / variance - tilted.h) / self.alpha

    def objective(self, state: PowerEPState, q: RowMarginals, tilted: Tilted) -> Tensor:
        """L [] (eq. 21)."""
        c, h, u, log_w, ell = tilted
        log_z = 0.5 * (state.a.T @ state.nu) @ q.mean - q.chol.diagonal().log().sum()
        log_z = log_z + 0.5 * state.prior_precision.log().sum()  # log Z_q − log Z_p
        if self.alpha == 0:
            site = state.nu[:, None] * u - 0.5 * state.tau[:, None] * u.square()
            return log_z + (log_w.exp() * (ell - site)).sum()
        cavity = log_normaliser(h, c) - log_normaliser(q.mu / q.v, 1 / q.v)  # log E_q[f̃^−α]
        return log_z + (cavity + (log_w + self.alpha * ell).logsumexp(1)).sum() / self.alpha

    @torch.no_grad()
    def step(self, state: PowerEPState, batch: Batch, rng: Rng) -> tuple[PowerEPState, Info]:
        q = self.gaussians(state)
        tilted = self.tilt(state, q)
        tau, nu = self.sites(q, tilted)
        change = ((tau - state.tau) * q.v).abs().max()
        value = self.objective(state, q, tilted)
        name = "elbo" if self.alpha == 0 else "objective"
        new_state = replace(
            state,
            tau=state.tau + self.damping * (tau - state.tau),
            nu=state.nu + self.damping * (nu - state.nu),
        )
        return new_state, {name: value, "change": change}

    @torch.no_grad()
    def posterior(self, state: PowerEPState) -> RefinedPosterior:
        """Two chains of draws of q."""
        q = self.gaussians(state)
        offset = torch.linalg.solve_triangular(q.chol.T, state.base.flatten(0, 1).T, upper=True).T
        return RefinedPosterior(
            q.mean + offset.unflatten(0, state.base.shape[:2]),
            q.mean.expand(INDEPENDENT_CHAINS, -1),
            list(state.model.names),
            state.model,
            objective=float(self.objective(state, q, self.tilt(state, q))),
            bounds=self.alpha == 0,
        )
