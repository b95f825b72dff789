"""Likelihoods of several tasks: E_q(f)[log p(y|f)] given the Gaussian marginals of the top layer,
and predictives.

``outputs`` is the number of latent functions per task; μ and v are [S, T, n, outputs], y is [T,
n]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor, nn

from components.contracts.predictive import Categorical, GaussianMixture, PoissonMixture, Predictive
from components.errors import ConfigMismatchError
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal

if TYPE_CHECKING:
    from components.problems.supervised import Supervised

Link = Literal["probit", "logit", "log"]
NOISE_FLOOR = 1e-6  # smaller noise exceeds the precision of float32 labels


class LabelLikelihood(nn.Module):
    """Defaults of a likelihood: one latent function per task, expectations without samples of f, no
    learned noise."""

    outputs = 1
    samples_f = False

    def noise_parameters(self) -> list[nn.Parameter]:
        return []


class GaussianLabels(LabelLikelihood):
    """y = f + N(0, σ_t²): closed form E_q[log N(y|f, σ²)] = log N(y|μ, σ²) − v/(2σ²)."""

    def __init__(self, n_tasks: int, noise_variance: float, like: Tensor):
        super().__init__()
        # σ² = floor + softplus(raw) ≥ floor; an initial value at the floor starts slightly above
        # it, for a nonzero gradient.
        above = max(noise_variance - NOISE_FLOOR, NOISE_FLOOR)
        raw = above if above > 30 else math.log(math.expm1(above))
        self.raw_noise = nn.Parameter(
            torch.full((n_tasks,), raw, dtype=like.dtype, device=like.device)
        )

    @property
    def noise_variance(self) -> Tensor:
        return NOISE_FLOOR + nn.functional.softplus(self.raw_noise)  # [T]

    def noise_parameters(self) -> list[nn.Parameter]:
        return [self.raw_noise]

    def expected_log_prob(
        self, y: Tensor, mean: Tensor, variance: Tensor, noise: Tensor | None
    ) -> Tensor:
        """[S, T, n]."""
        s2 = self.noise_variance[:, None]
        residual = (y - mean.squeeze(-1)).square() + variance.squeeze(-1)
        return -0.5 * (LOG_2PI + s2.log() + residual / s2)

    def predictive(self, mean: Tensor, variance: Tensor, noise: Tensor | None) -> Predictive:
        mu = mean.squeeze(-1).transpose(1, 2)  # [S, B, T]
        return GaussianMixture(mu, variance.squeeze(-1).transpose(1, 2) + self.noise_variance)


class BernoulliLabels(LabelLikelihood):
    """y ∈ {0, 1}, P(y = 1) = Φ(f) or 1/(1 + e⁻ᶠ); expectations by Gauss–Hermite quadrature."""

    nodes: Tensor
    weights: Tensor

    def __init__(self, link: Link, n_nodes: int, like: Tensor):
        super().__init__()
        self.link = link
        nodes, weights = np.polynomial.hermite.hermgauss(n_nodes)
        self.register_buffer("nodes", torch.as_tensor(nodes * math.sqrt(2)).to(like))
        self.register_buffer("weights", torch.as_tensor(weights / math.sqrt(math.pi)).to(like))

    def _log_p(self, mean: Tensor, variance: Tensor, sign: Tensor | float) -> Tensor:
        f = sign * (mean + variance.sqrt() * self.nodes)  # [S, T, n, nodes]
        return torch.special.log_ndtr(f) if self.link == "probit" else nn.functional.logsigmoid(f)

    def expected_log_prob(
        self, y: Tensor, mean: Tensor, variance: Tensor, noise: Tensor | None
    ) -> Tensor:
        sign = (2 * y.to(mean.dtype) - 1).unsqueeze(-1)
        return self._log_p(mean, variance, sign) @ self.weights

    def predictive(self, mean: Tensor, variance: Tensor, noise: Tensor | None) -> Predictive:
        log_w = self.weights.log()
        both = [
            torch.logsumexp(self._log_p(mean, variance, sign) + log_w, -1) for sign in (-1.0, 1.0)
        ]
        return Categorical(torch.stack(both, -1).transpose(1, 2))  # [S, B, T, 2]


class SoftmaxLabels(LabelLikelihood):
    """y ∈ {0 … C−1}, P(y = c) = softmax(f)_c with C latent functions; one sample of f for each
    sample of λ."""

    samples_f = True

    def __init__(self, n_classes: int):
        super().__init__()
        self.outputs = n_classes

    def expected_log_prob(
        self, y: Tensor, mean: Tensor, variance: Tensor, noise: Tensor | None
    ) -> Tensor:
        assert noise is not None
        logits = (mean + variance.sqrt() * noise).log_softmax(-1)
        return logits.gather(-1, y.expand(logits.shape[:-1]).unsqueeze(-1)).squeeze(-1)

    def predictive(self, mean: Tensor, variance: Tensor, noise: Tensor | None) -> Predictive:
        assert noise is not None
        return Categorical((mean + variance.sqrt() * noise).transpose(1, 2))  # [S, B, T, C]


class PoissonLabels(LabelLikelihood):
    """y ∈ {0, 1, 2 …}, y ~ Poisson(eᶠ), a log-Gaussian Cox process if rows are cells of its domain:
    closed form E_q[log p(y|f)] = y μ − e^(μ + v/2) − log y!.

    Predictions are mixtures of Poisson distributions at the Gauss–Hermite nodes of q(f).

    Source: Boustati (2021), sections 2.1.2.2 and 2.4.2; Møller, Syversveen and Waagepetersen
    (1998)."""

    nodes: Tensor
    log_weights: Tensor

    def __init__(self, n_nodes: int, like: Tensor):
        super().__init__()
        nodes, weights = np.polynomial.hermite.hermgauss(n_nodes)
        self.register_buffer("nodes", torch.as_tensor(nodes * math.sqrt(2)).to(like))
        log_weights = np.log(weights) - 0.5 * math.log(math.pi)
        self.register_buffer("log_weights", torch.as_tensor(log_weights).to(like))

    def expected_log_prob(
        self, y: Tensor, mean: Tensor, variance: Tensor, noise: Tensor | None
    ) -> Tensor:
        """[S, T, n]."""
        mu = mean.squeeze(-1)
        return y * mu - (mu + 0.5 * variance.squeeze(-1)).exp() - (y + 1).lgamma()

    def predictive(self, mean: Tensor, variance: Tensor, noise: Tensor | None) -> Predictive:
        if not bool(variance.any()):  # f is deterministic
            return PoissonMixture(mean.squeeze(-1).mT, mean.new_zeros(len(mean)))
        f = (mean + variance.sqrt() * self.nodes).permute(0, 3, 2, 1)  # [S, nodes, B, T]
        return PoissonMixture(f.flatten(0, 1), self.log_weights.repeat(len(mean)))


Likelihood = GaussianLabels | BernoulliLabels | SoftmaxLabels | PoissonLabels


def predictive_at_draws(
    likelihood: Likelihood, mean: Tensor, variance: Tensor, n: int, generator: torch.Generator
) -> Predictive:
    """p(y | f) at n draws f ~ N(mean, variance), separately for each row; each of the S moments is
    used for n/S draws."""
    indices = torch.arange(n, device=mean.device) % len(mean)
    eps = standard_normal((n, *mean.shape[1:]), generator, mean)
    f = mean[indices] + variance.sqrt()[indices] * eps
    return likelihood.predictive(f, torch.zeros_like(f), torch.zeros_like(f))


def make_likelihood(
    problem: Supervised,
    noise_variance: float,
    link: Link,
    quadrature_nodes: int,
) -> Likelihood:
    """Gaussian for real labels, Poisson for counts under the log link, Bernoulli for binary labels,
    softmax for classes.

    Raises:
        ConfigMismatchError: labels under the log link are not counts.
    """
    x = problem.train.x
    if link == "log":
        y = problem.train.y[problem.train.mask]
        if problem.target != "real" or bool(((y < 0) | (y != y.round())).any()):
            raise ConfigMismatchError(
                "model.link=log: requires counts 0, 1, 2 …, unlike the labels of "
                f"dataset={problem.name}; use model.link=probit, or counts without standardisation "
                "(dataset=counts)"
            )
        return PoissonLabels(quadrature_nodes, x)
    if problem.target == "real":
        return GaussianLabels(problem.n_tasks, noise_variance, x)
    if problem.target == "binary":
        return BernoulliLabels(link, quadrature_nodes, x)
    return SoftmaxLabels(problem.n_classes)
