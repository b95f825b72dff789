"""Two-layer multi-task deep GP with the top layer integrated out.

Only the inner layer is variational.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from components.contracts.predictive import Predictive
from components.maths.cholesky import jittered_cholesky
from components.maths.divergences.gaussian_kl import kl_diagonal
from components.maths.exponential.standard_draws import standard_normal
from components.maths.kernels import Shape, kernel
from components.models.deep_gp.module import pool
from components.models.shallow_gp.exact import ExactGP
from components.models.shallow_gp.prior import CoregionalisedCovariance, IndependentCovariance

if TYPE_CHECKING:
    from components.contracts.problems import Batch
    from components.models.shallow_gp.labels import Labels

# largest number of draws of v among draws of f; each draw of v needs a factorisation
MAX_WARP_DRAWS = 20


class InnerFunctions(nn.Module):
    """I shared functions g_i(x) = m_i(x) + σ Σ_m A_m(x) v_im, A(x) = L⁻¹ κ(Z, x), v_i ~ N(0, I),
    with q(v) diagonal.

    The projection of a GP on its inducing inputs: a draw of v defines a whole function, consistent
    between training and test inputs, as required by the exact layer above (independent marginals
    per row would add noise to its inputs).  The inducing inputs are part of this prior, not of the
    approximation, and are fixed to avoid overfitting."""

    inducing: Tensor

    def __init__(
        self,
        inducing: Tensor,  # [M, D]
        n_functions: int,
        *,
        shape: Shape,
        lengthscale: float,
        variance: float,
        q_mean: Tensor,  # [I, M]
        q_scale: float,
        mean_weight: Tensor | None,  # [D, I]; None means a zero mean function
        jitter: float,
    ):
        super().__init__()
        self.shape = shape
        self.jitter = jitter
        self.initial = (lengthscale, variance)
        self.register_buffer("inducing", inducing.clone())
        self.log_lengthscale = nn.Parameter(
            inducing.new_full((inducing.shape[1],), math.log(lengthscale))
        )
        self.log_variance = nn.Parameter(inducing.new_full((), math.log(variance)))
        self.q_mean = nn.Parameter(q_mean.clone())
        self.log_q_scale = nn.Parameter(
            inducing.new_full((n_functions, inducing.shape[0]), math.log(q_scale))
        )
        self.register_buffer("mean_weight", mean_weight)

    def forward(self, x: Tensor, v: Tensor) -> tuple[Tensor, float]:
        """g(x) [..., I] for x [..., D] and one draw v [I, M]; also the jitter added to κ(Z, Z)."""
        lengthscale = self.log_lengthscale.exp()
        unit = x.new_ones(())
        Z = self.inducing
        L, used = jittered_cholesky(
            kernel(Z, Z, lengthscale, unit, self.shape), self.jitter, "K_zz of the inner layer"
        )
        weights = torch.linalg.solve_triangular(L.T, v.T, upper=True)  # L⁻ᵀ vᵀ [M, I]
        rows = x.reshape(-1, x.shape[-1])
        g = torch.exp(0.5 * self.log_variance) * (
            kernel(rows, Z, lengthscale, unit, self.shape) @ weights
        )
        if isinstance(self.mean_weight, Tensor):
            g = g + rows @ self.mean_weight
        return g.reshape(*x.shape[:-1], -1), used

    def sample(self, eps: Tensor) -> Tensor:
        """v = m + s ∘ ε."""
        return self.q_mean + self.log_q_scale.exp() * eps

    def kl(self) -> Tensor:
        """KL[q(v) ‖ N(0, I)], in nats."""
        return kl_diagonal(self.q_mean, (2 * self.log_q_scale).exp(), 0.0, 1.0)

    def log_hyperprior(self, scale: float) -> Tensor:
        """ln ℓ and ln σ² are normal around their initial values; up to a constant."""
        lengthscale, variance = self.initial
        squares = (self.log_lengthscale - math.log(lengthscale)).square().sum()
        return -0.5 * (squares + (self.log_variance - math.log(variance)).square()) / scale**2


class CollapsedMDGP(nn.Module):
    """ELBO = E_q(v)[log p(y | Λ_v)] − KL[q(v) ‖ p(v)], with log p(y | Λ) the exact log marginal
    likelihood of the top.

    Λ_v(x) = g_v(x), or (g_v(x), x) if inputs are passed on.  The bound is at least as tight as with
    a sparse top layer and the same inner layer, and the top has no variational parameters.

    Source: Boustati (2021), eqs. (3.13) and (3.14); Titsias (2009) for integrating out the Gaussian
    part."""

    def __init__(
        self, inner: InnerFunctions, top: ExactGP, pass_inputs: bool, hyperprior: float | None
    ):
        super().__init__()
        self.inner = inner
        self.top = top
        self.pass_inputs = pass_inputs
        self.hyperprior = hyperprior

    def draw_noise(self, batch: Batch | None, n_samples: int, generator: torch.Generator) -> Tensor:
        """ε [S, I, M]."""
        m = self.inner.q_mean
        return standard_normal((n_samples, *m.shape), generator, m)

    def features(self, x: Tensor, eps: Tensor) -> tuple[Tensor, float]:
        """Λ_v at x [..., D] for one ε [I, M]."""
        g, jitter = self.inner(x, self.inner.sample(eps))
        return (torch.cat([g, x], -1) if self.pass_inputs else g), jitter

    def _labels(self, eps: Tensor) -> tuple[Labels, float]:
        features, jitter = self.features(self.top.labels.x, eps)
        return replace(self.top.labels, x=features), jitter

    def log_marginal(self, labels: Labels, eps: Tensor) -> Tensor:
        """log p(y | Λ_v) of given labels at one ε, in nats."""
        return self.top.log_marginal(replace(labels, x=self.features(labels.x, eps)[0]))[0]

    def elbo(self, batch: Batch, noise: Tensor) -> dict[str, Tensor]:
        """Bound for all training labels, in nats, including the log hyper-prior if there is one.

        It does not depend on the batch.
        """
        total = torch.zeros((), dtype=noise.dtype, device=noise.device)
        most = 0.0
        for eps in noise:
            labels, inner_jitter = self._labels(eps)
            marginal, jitter = self.top.log_marginal(labels)
            total = total + marginal
            most = max(most, jitter, inner_jitter)
        log_likelihood = total / noise.shape[0]
        kl = self.inner.kl()
        terms = {"elbo": log_likelihood - kl, "log_likelihood": log_likelihood, "kl": kl}
        if self.hyperprior is not None:
            log_prior = self.top.log_hyperprior(self.hyperprior) + self.inner.log_hyperprior(
                self.hyperprior
            )
            terms |= {"log_hyperprior": log_prior, "elbo": terms["elbo"] + log_prior}
        return terms | {"jitter": torch.tensor(most)}

    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive:
        """p(y*|x*, y) as a mixture over draws of v, for every task at x [B, D]; differentiable in
        x."""
        parts = []
        for eps in self.draw_noise(None, n, generator):
            with torch.no_grad():
                labels, _ = self._labels(eps)
                posterior = self.top.condition_on(labels)
            parts.append(self.top.predict_from(posterior, labels, self.features(x, eps)[0]))
        return pool(parts)

    def predict_f(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive:
        """p(y | f) at n draws of f, separately at every row of x [B, D].

        The draws of f use at most ``MAX_WARP_DRAWS`` draws of v.
        """
        parts = []
        warps = min(n, MAX_WARP_DRAWS)
        for i, eps in enumerate(self.draw_noise(None, warps, generator)):
            labels, _ = self._labels(eps)
            of_this = n // warps + (i < n % warps)
            features = self.features(x, eps)[0]
            parts.append(
                self.top.predict_f_from(
                    self.top.condition_on(labels), labels, features, of_this, generator
                )
            )
        return pool(parts)

    @torch.no_grad()
    def sample_prior_f(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """p(y | f) at one draw of the inner functions and of f from their priors, jointly at x
        [B, D]: S = 1."""
        v = self.draw_noise(None, 1, generator)[0]
        g, _ = self.inner(x, v)
        return self.top.sample_prior_f(torch.cat([g, x], -1) if self.pass_inputs else g, generator)

    def noise_parameters(self) -> list[nn.Parameter]:
        """Parameters of the observation noise, which ``noise_warmup`` keeps fixed."""
        return self.top.noise_parameters()

    # Figures
    @property
    def process_names(self) -> list[str]:
        functions = [f"g{i + 1}" for i in range(self.inner.q_mean.shape[0])]
        inputs = [f"x{d + 1}" for d in range(self.inner.inducing.shape[1])]
        return functions + (inputs if self.pass_inputs else [])

    @torch.no_grad()
    def ard_weights(self) -> Tensor:
        """ω = 1/ℓ² of the top layer by task and feature [T, D], eq. (3.15); a coregionalised top
        has the same for all tasks."""
        covariance = self.top.covariance
        # the types of its top layer
        assert isinstance(covariance, IndependentCovariance | CoregionalisedCovariance)
        return torch.exp(-2 * covariance.log_lengthscale).expand(covariance.n_tasks, -1).clone()
