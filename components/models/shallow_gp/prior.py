"""Priors over functions f_t(x) of several tasks: mean functions and covariances of points (x, t).

Points come in G groups: x [G, n, D] and task [G, n].  ``IndependentCovariance`` has a group for
each task (G = T); ``CoregionalisedCovariance`` supports any groups.  Both may be broadcast: x [1,
n, D], task [T, 1]."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Literal, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from components.contracts.predictive import Predictive
from components.maths.cholesky import jittered_cholesky
from components.maths.exponential.standard_draws import standard_normal
from components.maths.kernels import PRODUCT_SHAPES, Shape, kernel, prior_variance
from components.models.deep_gp.likelihoods import GaussianLabels, Likelihood
from components.models.shallow_gp.labels import pair_with_tasks
from components.models.shallow_gp.mean_function import MeanFunction, log_normal


class Covariance(Protocol):
    """Cov[f_t(x), f_t'(x')], with its hyper-parameters."""

    n_tasks: int

    @property
    def independent(self) -> bool: ...  # zero covariance between tasks: one group per task

    def matrix(self, x: Tensor, task: Tensor, z: Tensor, z_task: Tensor) -> Tensor:
        """Covariance between points, [G, n, m]."""
        ...

    def variance(self, x: Tensor, task: Tensor) -> Tensor:
        """Prior variance at points, broadcastable to [G, n]."""
        ...

    def log_hyperprior(self, scale: float) -> Tensor:
        """Log density of the hyper-parameters around their initial values, up to a constant."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


ARD = Literal["none", "own", "shared"]


class IndependentCovariance(nn.Module):
    """Cov[f_t(x), f_t'(x')] = δ_tt' σ_t² κ(Σ_d (x_d − x'_d)²/ℓ_td²).

    ``ard``: "none", ℓ_td = ℓ_t; "own", a lengthscale per task and input; "shared", ℓ_td =
    ℓ_d."""

    independent: ClassVar[bool] = True

    def __init__(
        self,
        shape: Shape,
        ard: ARD,
        lengthscale: float,
        variance: float,
        n_tasks: int,
        like: Tensor,
    ):
        super().__init__()
        self.shape = shape
        self.n_tasks = n_tasks
        self.initial = (lengthscale, variance)
        size = (1 if ard == "shared" else n_tasks, 1 if ard == "none" else like.shape[-1])
        self.log_lengthscale = nn.Parameter(like.new_full(size, math.log(lengthscale)))
        self.log_variance = nn.Parameter(like.new_full((n_tasks,), math.log(variance)))

    def matrix(self, x: Tensor, task: Tensor, z: Tensor, z_task: Tensor) -> Tensor:
        """Covariance between points of the same task, [T, n, m]."""
        lengthscale = self.log_lengthscale.exp().expand(self.n_tasks, -1)
        z = z.expand(self.n_tasks, -1, -1)
        return kernel(x, z, lengthscale, self.log_variance.exp(), self.shape)

    def variance(self, x: Tensor, task: Tensor) -> Tensor:
        """Prior variance at points of these tasks, [G, n], constant in x unless the kernel depends
        on products."""
        variance = self.log_variance.exp()[task]
        if self.shape not in PRODUCT_SHAPES:
            return variance
        rate = (-self.log_lengthscale).exp().expand(self.n_tasks, -1)
        return variance * prior_variance(x * rate[task], rate.new_ones(1), self.shape)

    def log_hyperprior(self, scale: float) -> Tensor:
        """Log density of ln ℓ and ln σ², normal around their initial values, up to a constant."""
        lengthscale = log_normal(self.log_lengthscale, self.initial[0], scale)
        return lengthscale + log_normal(self.log_variance, self.initial[1], scale)


class CoregionalisedCovariance(nn.Module):
    """Cov[f_t(x), f_t'(x')] = B_tt' κ(Σ_d (x_d − x'_d)²/ℓ_d²), B = W Wᵀ + diag(κ₁ … κ_T): intrinsic
    coregionalisation; without ``diagonal`` B = W Wᵀ.

    W [T, R] is initialised at random with E[B] = variance · I, away from 0, where its gradient
    vanishes.

    Source: Bonilla, Chai and Williams (2007), eq. (1); Goovaerts (1997)."""

    independent: ClassVar[bool] = False

    def __init__(
        self,
        shape: Shape,
        ard: bool,
        lengthscale: float,
        variance: float,
        rank: int,
        n_tasks: int,
        like: Tensor,
        generator: torch.Generator,
        diagonal: bool = True,
    ):
        super().__init__()
        self.shape = shape
        self.n_tasks = n_tasks
        self.initial = (lengthscale, variance)
        self.low_rank_variance = variance / 2 if diagonal else variance  # initial E[(W Wᵀ)_tt]
        self.log_lengthscale = nn.Parameter(
            like.new_full((1, like.shape[-1] if ard else 1), math.log(lengthscale))
        )
        draw = standard_normal((n_tasks, rank), generator, like)
        self.W = nn.Parameter(draw * math.sqrt(self.low_rank_variance / rank))
        self.log_kappa = (
            nn.Parameter(like.new_full((n_tasks,), math.log(variance / 2))) if diagonal else None
        )

    @property
    def coregionalisation(self) -> Tensor:
        """B [T, T]."""
        low_rank = self.W @ self.W.T
        return low_rank if self.log_kappa is None else low_rank + torch.diag(self.log_kappa.exp())

    def matrix(self, x: Tensor, task: Tensor, z: Tensor, z_task: Tensor) -> Tensor:
        """Covariance between points, [G, n, m]."""
        # Products with indicator matrices instead of B[task][:, task], whose backward pass would
        # scatter.
        row_task, column_task = (one_hot(t, self.n_tasks).to(self.W.dtype) for t in (task, z_task))
        coefficient = (row_task @ self.coregionalisation) @ column_task.mT  # B_tt' [G, n, m]
        z = z.expand(max(x.shape[0], z.shape[0]), -1, -1)
        unit = coefficient.new_ones(z.shape[0])
        return coefficient * kernel(
            x, z, self.log_lengthscale.exp().expand(z.shape[0], -1), unit, self.shape
        )

    def variance(self, x: Tensor, task: Tensor) -> Tensor:
        """Prior variance at points of these tasks, [G, n]."""
        variance = self.coregionalisation.diagonal()[task]
        if self.shape not in PRODUCT_SHAPES:
            return variance
        return variance * prior_variance(x, (-2 * self.log_lengthscale[0]).exp(), self.shape)

    def log_hyperprior(self, scale: float) -> Tensor:
        """Log density of ln ℓ and ln κ, normal around their initial values, and of W, normal with
        its initial variance."""
        lengthscale, variance = self.initial
        W = -0.5 * self.W.square().sum() * self.W.shape[1] / self.low_rank_variance
        log_prior = W + log_normal(self.log_lengthscale, lengthscale, scale)
        if self.log_kappa is None:
            return log_prior
        return log_prior + log_normal(self.log_kappa, variance / 2, scale)


class GPParts(NamedTuple):
    """Prior and likelihood of a Gaussian process, and settings of its bound."""

    mean: MeanFunction
    covariance: Covariance
    likelihood: Likelihood
    noise_variance: float  # initial value
    hyperprior: float | None
    jitter: float


class LearnedGP(nn.Module):
    """Gaussian process over points (x, t) with hyper-parameters to learn."""

    def __init__(self, parts: GPParts):
        super().__init__()
        self.mean = parts.mean
        self.covariance = parts.covariance
        self.likelihood = parts.likelihood
        self.hyperprior = parts.hyperprior
        self.jitter = parts.jitter
        self.log_initial_noise = math.log(parts.noise_variance)

    def log_hyperprior(self, scale: float) -> Tensor:
        """Log density of the hyper-parameters: scales log-normal around their initial values, the
        others normal around 0."""
        log_prior = self.covariance.log_hyperprior(scale) + self.mean.log_hyperprior(scale)
        if isinstance(self.likelihood, GaussianLabels):
            noise = (self.likelihood.noise_variance.log() - self.log_initial_noise) / scale
            log_prior = log_prior - 0.5 * noise.square().sum()
        return log_prior

    def bound_terms(
        self, bound: Tensor, log_likelihood: Tensor, kl: Tensor, jitter: float
    ) -> dict[str, Tensor]:
        """The bound plus the log hyper-prior, if any, with its terms."""
        terms = {"elbo": bound, "log_likelihood": log_likelihood, "kl": kl}
        if self.hyperprior is not None:
            terms["log_hyperprior"] = self.log_hyperprior(self.hyperprior)
            terms["elbo"] = bound + terms["log_hyperprior"]
        return terms | {"jitter": torch.tensor(jitter)}

    def hyperparameters(self) -> list[nn.Parameter]:
        """Parameters that a restart redraws."""
        return [*self.covariance.parameters(), *self.likelihood.parameters()]

    def noise_parameters(self) -> list[nn.Parameter]:
        """Parameters of the observation noise."""
        return self.likelihood.noise_parameters()

    @torch.no_grad()
    def sample_prior_f(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """p(y | f) at one draw f ~ GP(m, K), jointly at x [B, D] and all tasks: S = 1."""
        points, tasks = pair_with_tasks(x, self.covariance.n_tasks)
        groups = (len(tasks), len(x))  # [T, B]: one group per task, or a single group
        if not self.covariance.independent:
            points = points.expand(*groups, -1).reshape(1, -1, x.shape[1])
            tasks = tasks.expand(groups).reshape(1, -1)
        K = self.covariance.matrix(points, tasks, points, tasks)  # [G, n, n]
        L, _ = jittered_cholesky(K, self.jitter, "the prior covariance")
        size = (*K.shape[:2], self.likelihood.outputs)
        mean = self.mean(points, tasks)
        f = L @ standard_normal(size, generator, K)  # [G, n, outputs]
        f = f if isinstance(mean, float) else f + mean.expand(K.shape[:2])[..., None]
        f = f.view(1, *groups, -1)
        zeros = torch.zeros_like(f)
        return self.likelihood.predictive(f, zeros, zeros)
