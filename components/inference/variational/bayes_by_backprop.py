"""Bayes by backprop: a factorised Gaussian over the weights of a network, with the bound estimated
from draws of whole networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import NonNegativeInt, model_validator
from torch import Tensor

from components.contracts.checks import NamedScores
from components.contracts.posteriors import Analyses
from components.contracts.problems import Batch
from components.contracts.roles import BetweenZeroAndOne, PositivePair
from components.inference.gaussian_weights.mean_field import (
    MeanField,
    MeanFieldMethod,
    MeanFieldPosterior,
    MeanFieldState,
)
from components.inference.point.descent import frozen
from components.maths.cholesky import LOG_2PI
from components.registry import register

Divergence = Literal["sampled", "entropy", "closed", "path"]
EVERY: tuple[Divergence, ...] = ("sampled", "entropy", "closed", "path")


@dataclass(frozen=True)
class MeasuredPosterior(MeanFieldPosterior, Analyses):
    """q(θ), and the variances of the gradients of its bound."""

    # traces of covariances by divergence and by parameter; empty if none is measured
    variances: dict[str, float]

    def scores(self) -> NamedScores:
        """trace/… of the covariance of ∇L/N, and trace_ratio/… relative to the published
        divergence."""
        out: NamedScores = {f"trace/{name}": value for name, value in self.variances.items()}
        for name, value in self.variances.items():
            parameter = name.partition(" of ")[2]
            out[f"trace_ratio/{name}"] = value / self.variances[f"sampled of {parameter}"]
        return out


@register("inference", "bayes_by_backprop")
class BayesByBackprop(MeanFieldMethod):
    """Bayes by backprop: factorised Gaussian network weights by reparameterised draws (Adam).

        L̂ = S⁻¹ Σ_s [N/B Σ_b log p(y_b | x_b, θ_s) + log p(θ_s) − log q(θ_s)]
        θ_s = μ + σ ∘ ε_s,  ε_s ~ N(0, I)

    Each draw contains all weights of a network.  ``divergence`` selects how the last two terms are
    computed.  sampled: both from the draws, as published.  entropy: log p from the draws, the
    entropy Σ log σ + const. in closed form.  closed: KL(q ‖ p) in closed form.  path: from the
    draws, with q held fixed in log q (omitting the score of log q, which has mean 0).  For a
    Gaussian the total derivative of log q(μ + σε | μ, σ) is (0, −1/σ) for every ε, so that sampled
    and entropy have the same gradient for each draw; the other two differ from it by noise of mean
    0.  (Bardenet's chain rule for F(w) = log p(y|w) + log p(w) omits −log q, but the estimator
    above it needs the gradient of −log q.)

    ``prior: scale_mixture`` replaces the network's own prior by π N(0, σ_1²) + (1 − π) N(0, σ_2²)
    for every weight, evaluated at draws.  ``measured`` draws of each gradient, for all training
    rows and the same noise, estimate the trace of its covariance at every evaluation (if above 0),
    for ∇L/N with respect to μ and log σ.  Info: elbo, log_likelihood and kl in nats for the whole
    data set.

    Raises:
        ConfigError: a scale mixture with divergence=closed, which has no closed form.

    Source: Blundell et al. (2015), sections 3.2 and 3.3; Bardenet (2021), section 5.3.1;
    Roeder, Wu and Duvenaud (2017) on path.
    """

    divergence: Divergence
    prior: Literal["network", "scale_mixture"]
    mixture_share: BetweenZeroAndOne
    mixture_stds: PositivePair
    measured: NonNegativeInt

    @model_validator(mode="after")
    def _has_closed_form(self) -> BayesByBackprop:
        if self.prior == "scale_mixture" and self.divergence == "closed":
            raise ValueError(
                "divergence: the KL of a scale mixture has no closed form; use sampled, entropy or "
                "path"
            )
        return self

    def log_prior(self, q: MeanField, theta: Tensor) -> Tensor:
        """log p(θ), [S, P] -> [S]."""
        if self.prior == "network":
            s = q.network.prior_std
            return (-0.5 * ((theta / s).square() + LOG_2PI) - s.log()).sum(1)
        shares = theta.new_tensor([self.mixture_share, 1 - self.mixture_share])
        s = theta.new_tensor(self.mixture_stds)
        each = shares.log() - s.log() - 0.5 * ((theta[..., None] / s).square() + LOG_2PI)
        return each.logsumexp(-1).sum(1)

    def kl(self, q: MeanField, theta: Tensor, divergence: Divergence) -> Tensor:
        """Estimates of KL(q ‖ p) from draws θ [S, P] of q: [S], or [] in closed form."""
        if divergence == "closed":
            return q.kl()
        if divergence == "entropy":
            return -(q.log_std + 0.5 * (1 + LOG_2PI)).sum() - self.log_prior(q, theta)
        mean: Tensor = q.network.theta
        log_std: Tensor = q.log_std
        if divergence == "path":
            mean = mean.detach()
            log_std = log_std.detach()
        log_q = (-0.5 * (((theta - mean) / log_std.exp()).square() + LOG_2PI) - log_std).sum(1)
        return log_q - self.log_prior(q, theta)

    def bound(
        self, q: MeanField, batch: Batch, generator: torch.Generator, divergence: Divergence
    ) -> dict[str, Tensor]:
        """Unbiased estimates of the bound and of its two terms, each []."""
        theta = q.draw(self.n_samples, generator)
        f = q.network.outputs(theta, batch.x)
        log_likelihood = (batch.scale / self.n_samples) * q.network.log_prob(f, batch).sum()
        kl = self.kl(q, theta, divergence).mean()
        return {
            "elbo": log_likelihood - kl + q.network.hyperprior(),
            "log_likelihood": log_likelihood,
            "kl": kl,
        }

    def terms(
        self, q: MeanField, t: int, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        return self.bound(q, batch, generator, self.divergence)

    def variances(self, state: MeanFieldState) -> dict[str, float]:
        """Traces of the covariance of ∇L/N with respect to μ and log σ, for each divergence
        available with this prior, on the same noise."""
        q = state.q
        traces = {}
        parameters = {"mu": q.network.theta, "log_sigma": q.log_std}
        for divergence in EVERY if self.prior == "network" else [d for d in EVERY if d != "closed"]:
            generator = torch.Generator(q.log_std.device).manual_seed(0)
            sums = {
                name: [torch.zeros_like(p), torch.zeros_like(p)] for name, p in parameters.items()
            }
            first: list[Tensor] = []  # subtracted, so that the squares keep their precision
            for _ in range(self.measured):
                value = (
                    self.bound(q, state.train, generator, divergence)["elbo"] / state.train.n_rows
                )
                gradients = torch.autograd.grad(value, list(parameters.values()))
                first = first or list(gradients)
                for (total, square), g, origin in zip(sums.values(), gradients, first, strict=True):
                    total += g - origin
                    square += (g - origin).square()
            n = self.measured
            for name, (total, square) in sums.items():
                traces[f"{divergence} of {name}"] = float(
                    ((square - total.square() / n) / (n - 1)).sum()
                )
        return traces

    def posterior(self, state: MeanFieldState) -> MeasuredPosterior:
        variances = self.variances(state) if self.measured > 1 else {}
        return MeasuredPosterior(q=frozen(state.q), n_predict=self.n_predict, variances=variances)
