"""Users' Gaussian processes for GPyTorch, as bounds with predictives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import gpytorch
import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.utils.memoize import clear_cache_hook
from linear_operator.utils.errors import NanError, NotPSDError
from torch import Tensor, nn

from components.contracts.predictive import GaussianMixture, Predictive
from components.contracts.problems import Batch
from components.contracts.user_code import reraise_user_error
from components.errors import ConfigMismatchError, NumericalError
from components.maths.exponential.standard_draws import standard_normal
from components.models.deep_gp.likelihoods import Likelihood


@contextmanager
def exactly(where: str, whose: object = None) -> Iterator[None]:
    """Context in which GPyTorch uses Cholesky factors, never conjugate gradients.

    Conjugate gradients are inexact and draw probes from PyTorch's global stream.  The second
    argument is the user's code that runs in the context.

    Raises:
        NumericalError: a covariance has no Cholesky factor.
        ConfigMismatchError: the user's code raised.
    """
    with ExitStack() as stack:
        stack.enter_context(gpytorch.settings.fast_computations(False, False, False))
        try:
            with reraise_user_error(where, whose):
                yield
        except ConfigMismatchError as error:
            if isinstance(error.__cause__, NotPSDError | NanError):
                raise NumericalError(
                    f"{where}: a covariance has no Cholesky factor",
                    "raise the noise, or lower inference.lr",
                ) from error
            raise


def log_priors(module: gpytorch.Module, like: Tensor) -> Tensor:
    """Σ log p of the hyper-parameters with priors, []."""
    log_probs = [
        prior.log_prob(closure(owner)).sum()
        for _, owner, prior, closure, _ in module.named_priors()
    ]
    return torch.stack(log_probs).sum() if log_probs else like.new_zeros(())


def bound_terms(
    module: gpytorch.Module, bound: Tensor, log_likelihood: Tensor, kl: Tensor, priors: Tensor
) -> dict[str, Tensor]:
    """The bound plus the log priors, with its terms; priors are optional."""
    terms = {"elbo": bound + priors, "log_likelihood": log_likelihood, "kl": kl}
    return terms | ({"log_hyperprior": priors} if next(iter(module.named_priors()), None) else {})


class UserExactGP(nn.Module):
    """y = f(x) + N(0, σ²) for one task, with f the user's ``ExactGP``: the bound is the log
    marginal likelihood."""

    def __init__(self, gp: gpytorch.models.ExactGP, where: str):
        super().__init__()
        self.gp = gp
        self.where = where
        self._seen: Tensor | None = None  # hyper-parameters of GPyTorch's current caches

    def draw_noise(self, batch: Batch, n_samples: int, generator: torch.Generator) -> None:
        """None, because the bound is not sampled."""

    def elbo(self, batch: Batch, noise: None) -> dict[str, Tensor]:
        """log p(y) of all training labels, in nats, plus the log priors, if any.

        It does not depend on the batch.
        """
        self.gp.train()
        with exactly(self.where):
            (x,), y = self.gp.train_inputs, self.gp.train_targets
            marginal = self.gp.likelihood(self.gp(x)).log_prob(y)
            priors = log_priors(self.gp, marginal)
        return bound_terms(self.gp, marginal, marginal, torch.zeros_like(marginal), priors)

    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive:
        """p(y*|x*, y) at x [B, D] in closed form: S = 1; differentiable in x."""
        mean, variance, noise = self._marginals(x)
        return GaussianMixture(mean, variance + noise)

    def _marginals(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance of f at x [1, B, 1], and the variance of the noise."""
        now = torch.cat([p.detach().flatten() for p in self.parameters()])
        if self._seen is None or not torch.equal(self._seen, now):
            self.gp.train()  # drops caches of other hyper-parameters
            self._seen = now
        self.gp.eval()
        with exactly(self.where):
            f = self.gp(x)
            noise = self.gp.likelihood.noise
        return f.mean[None, :, None], f.variance[None, :, None], noise

    def hyperparameters(self) -> list[nn.Parameter]:
        """Parameters that a restart redraws."""
        return list(self.parameters())

    def noise_parameters(self) -> list[nn.Parameter]:
        """Parameters of the observation noise."""
        return list(self.gp.likelihood.parameters())


class UserSparseGP(nn.Module):
    """q(f) of the user's ``ApproximateGP`` for T tasks with C latent functions each: N/B Σ_b
    E_q[log p(y_b|f_b)] − KL.

    For B inputs it returns a batch of T · C functions (no batch dimension if T · C = 1), or a
    ``MultitaskMultivariateNormal``.

    Source: Hensman, Matthews and Ghahramani (2015)."""

    def __init__(
        self, gp: gpytorch.models.ApproximateGP, likelihood: Likelihood, n_tasks: int, where: str
    ):
        super().__init__()
        self.gp = gp
        self.likelihood = likelihood
        self.n_tasks = n_tasks
        self.where = where

    def marginals(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances of q(f) at x [B, D], [1, T, B, C] each."""
        q = self.gp(x)
        if not isinstance(q, MultivariateNormal):
            raise ConfigMismatchError(
                f"{self.where}: returns {type(q).__name__}, but must return a MultivariateNormal"
            )
        several = isinstance(q, MultitaskMultivariateNormal)
        T = self.n_tasks
        C = self.likelihood.outputs
        B = len(x)
        out = []
        for value in (q.mean, q.variance):
            value = value.mT if several else value
            if value.numel() != T * C * B:
                raise ConfigMismatchError(
                    f"{self.where}: returns {list(value.shape[:-1])} functions instead of {T * C} "
                    "(tasks times classes); set for its variational distribution, mean and kernel "
                    f"batch_shape=torch.Size([{T * C}])"
                )
            out.append(value.reshape(T, C, B).mT[None])
        return out[0], out[1]

    def _normal(
        self, B: int, n_samples: int, generator: torch.Generator, like: Tensor
    ) -> Tensor | None:
        if not self.likelihood.samples_f:
            return None
        shape = (n_samples, self.n_tasks, B, self.likelihood.outputs)
        return standard_normal(shape, generator, like)

    def draw_noise(self, batch: Batch, n_samples: int, generator: torch.Generator) -> Tensor | None:
        """Standard normals [S, T, B, C] if the likelihood has neither a closed form nor a
        quadrature, else None."""
        return self._normal(len(batch.x), n_samples, generator, batch.x)

    def elbo(self, batch: Batch, noise: Tensor | None) -> dict[str, Tensor]:
        """The bound on the log marginal likelihood and its terms; in nats."""
        self.gp.train()
        with exactly(self.where):
            mean, variance = self.marginals(batch.x)
            kl = self.gp.variational_strategy.kl_divergence().sum()
            priors = log_priors(self.gp, kl)
        y = torch.where(batch.mask, batch.y, 0).mT  # [T, B]
        expected = self.likelihood.expected_log_prob(y, mean, variance, noise)  # [S, T, B]
        log_likelihood = torch.where(batch.mask.mT, expected, 0.0).sum() * (
            batch.scale / expected.shape[0]
        )
        return bound_terms(self.gp, log_likelihood - kl, log_likelihood, kl, priors)

    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive:
        """p(y*|x*) of every task at x [B, D]: in closed form (S = 1), or a mixture over samples of
        f for classes."""
        mean, variance = self._compute_marginals(x)
        return self.likelihood.predictive(mean, variance, self._normal(len(x), n, generator, x))

    def _compute_marginals(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """``marginals`` at the current parameters, with positive variances."""
        self.gp.eval()
        for part in self.gp.modules():
            clear_cache_hook(part)  # factors of earlier parameters
        with exactly(self.where):
            mean, variance = self.marginals(x)
        return mean, variance.clamp_min(math.sqrt(torch.finfo(variance.dtype).tiny))

    def hyperparameters(self) -> list[nn.Parameter]:
        """Parameters that a restart redraws."""
        return [*self.gp.hyperparameters(), *self.likelihood.parameters()]

    def noise_parameters(self) -> list[nn.Parameter]:
        """Parameters of the observation noise."""
        return self.likelihood.noise_parameters()
