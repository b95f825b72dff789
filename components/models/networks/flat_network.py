"""Shared code of networks with flat weights θ and any layers: likelihood, prior, and a density over
θ.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from components.contracts.predictive import Categorical, GaussianMixture, Predictive
from components.contracts.problems import Batch
from components.contracts.roles import LearnableScale
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal
from components.models.networks.classifier import class_log_prob
from components.problems.supervised import Supervised


def count_frozen(pieces: Sequence[int], is_frozen: Sequence[bool]) -> dict[str, str]:
    """Fact for the terminal about frozen parameters; ``pieces`` are the sizes of the parameters."""
    n = sum(size for size, held in zip(pieces, is_frozen, strict=True) if held)
    counts = f"{sum(is_frozen)} of {len(pieces)} parameters frozen, {n:,} of {sum(pieces):,} values"
    return {"model": counts}


class FlatNetwork(nn.Module):
    """f(x; θ) [B, T, C] with weights θ [P].  Subclasses add ``initial``, ``forward`` and
    ``outputs``.

    Real labels: y_t ~ N(f_t(x), σ_t²); otherwise p(y_t = c) = softmax(f_t(x))_c.  Weights have
    independent priors N(0, s²); frozen ones are not in θ.  A learned log σ_t² has the prior
    N(log noise_init, noise_spread²), or a flat one (None).  For particles, θ [K, P'] holds the
    weights followed by the log σ_t² if they are learned."""

    prior_std: Tensor
    prior_precision: Tensor
    log_noise: Tensor
    weights: Tensor  # if some are frozen: all weights [Q]
    free: Tensor | None  # if some are frozen: indices of θ among all weights [P]
    own_inputs = True  # K particles may have separate inputs, x [K, B, D]

    def __init__(
        self,
        problem: Supervised,
        theta: Tensor,
        dropout: float,
        prior_std: float,
        noise: LearnableScale,
        noise_init: float,
        noise_spread: float | None,
    ):
        super().__init__()
        x = problem.train.x
        self.target = problem.target
        self.n_tasks = problem.n_tasks
        self.n_outputs = problem.n_classes
        self.dropout = dropout
        self.theta = nn.Parameter(theta.to(x))
        self.register_buffer("prior_std", torch.full_like(self.theta.detach(), prior_std))
        self.register_buffer("prior_precision", self.prior_std**-2, persistent=False)
        self.register_buffer("free", None)
        self.facts: dict[str, str] = {}
        # of the weights' prior
        self.log_normaliser = len(self.theta) * math.log(prior_std * math.sqrt(2 * math.pi))
        self.learns_noise = problem.target == "real" and noise == "learned"
        start = noise_init if noise == "learned" else noise
        log_noise = x.new_full((self.n_tasks,), math.log(start))  # log σ_t² [T]
        if self.learns_noise:
            self.log_noise = nn.Parameter(log_noise)
        else:
            self.register_buffer("log_noise", log_noise)
        self.noise_median = math.log(start)
        self.noise_spread = noise_spread

    def freeze(self, pieces: Sequence[int], is_frozen: Sequence[bool]) -> None:
        """Take frozen parameters out of θ; ``pieces`` are the sizes of all parameters, in order."""
        if not any(is_frozen):
            return
        repeats = torch.tensor(pieces)
        free = (~torch.tensor(is_frozen).repeat_interleave(repeats)).nonzero().flatten()
        self.register_buffer("weights", self.theta.detach().clone())
        self.free = free.to(self.theta.device)
        self.theta = nn.Parameter(self.weights[free])
        self.prior_std = self.prior_std[free]
        self.prior_precision = self.prior_precision[free]
        self.log_normaliser *= len(free) / len(self.weights)
        self.facts = count_frozen(pieces, is_frozen)

    def all_weights(self, theta: Tensor) -> Tensor:
        """θ [..., P], or all weights [..., Q], with the frozen ones: [..., Q]."""
        if self.free is None or theta.shape[-1] == len(self.weights):
            return theta
        return self.weights.expand(*theta.shape[:-1], -1).index_copy(-1, self.free, theta)

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor:
        """f [K, B, T, C] for K weight vectors θ [K, P'], P' ≥ the number of weights."""
        raise NotImplementedError

    # Likelihood and prior
    def log_prob(self, f: Tensor, batch: Batch, log_noise: Tensor | None = None) -> Tensor:
        """Σ_t log p(y_t|f_t) over the observed labels: f [..., B, T, C] -> [..., B]."""
        if self.target == "real":
            log_noise = self.log_noise if log_noise is None else log_noise
            residual = torch.where(batch.mask, batch.y, 0.0) - f[..., 0]  # [..., B, T]
            constant = -0.5 * (LOG_2PI + log_noise)
            log_density = constant - (0.5 * (-log_noise).exp()) * (residual * residual)
        else:
            log_density = class_log_prob(f, batch.y)
        return (log_density * batch.mask).sum(-1)

    def likelihood_gradients(
        self, f: Tensor, batch: Batch, log_noise: Tensor, value: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """N/B Σ_b log p(y_b|f_b) [K], empty without ``value``, and its slopes by f [K, T, C, B] and
        by log σ² [K or 1, T]."""
        is_observed = batch.mask.mT  # [T, B]
        if self.target == "real":
            residual = torch.where(is_observed, batch.y.mT - f[:, :, 0], 0.0)  # [K, T, B]
            # [K or 1, T], [T]
            precision = batch.scale * (-log_noise).exp()
            n = batch.scale * is_observed.sum(-1, dtype=f.dtype)
            squares = precision * residual.square().sum(-1)  # [K, T]
            by_f = residual.mul_(precision.unsqueeze(-1)).unsqueeze(2)
            by_noise = 0.5 * (squares - n)
            if not value:
                return f.new_zeros(0), by_f, by_noise
            return -0.5 * (squares + n * (log_noise + LOG_2PI)).sum(1), by_f, by_noise
        log_p = f.log_softmax(2)
        label = batch.y.mT.clamp_min(0).unsqueeze(-2).expand(*f.shape[:2], 1, -1)  # [K, T, 1, B]
        of_label = log_p.gather(2, label)[:, :, 0] if value else None  # [K, T, B]
        by_f = log_p.exp_().neg_().scatter_add_(2, label, f.new_ones(1, 1, 1, 1).expand_as(label))
        by_f.mul_((batch.scale * is_observed.to(f.dtype)).unsqueeze(-2))
        likelihood = (
            f.new_zeros(0)
            if of_label is None
            else batch.scale * (of_label * is_observed).sum((1, 2))
        )
        return likelihood, by_f, f.new_zeros(0)

    def noise_prior_gradient(self, log_noise: Tensor) -> Tensor:
        """The slope of ``noise_log_prior`` by every log σ_t², [K, T]."""
        if self.noise_spread is None:
            return torch.zeros_like(log_noise)
        return (self.noise_median - log_noise) / self.noise_spread**2

    def noise_log_prior(self, log_noise: Tensor) -> Tensor:
        """log N(log σ² | log noise_init, noise_spread²) summed over tasks; 0 if the prior is flat
        or the noise fixed."""
        if self.noise_spread is None or not self.learns_noise:
            return log_noise.new_zeros(log_noise.shape[:-1])
        z = (log_noise - self.noise_median) / self.noise_spread
        return -0.5 * (z**2 + math.log(2 * math.pi * self.noise_spread**2)).sum(-1)

    def hyperprior(self) -> Tensor:
        """log p(log σ²) of the module's noise."""
        return self.noise_log_prior(self.log_noise)

    def penalty(self) -> Tensor:
        """½ Σ θ²/s² − log p(log σ²): minus the log prior of the module's parameters, up to a
        constant."""
        return 0.5 * ((self.theta / self.prior_std) ** 2).sum() - self.hyperprior()

    def output_predictive(self, f: Tensor, log_noise: Tensor | None = None) -> Predictive:
        """Mixture over the samples of f [S, B, T, C]."""
        if self.target != "real":
            return Categorical(f)
        mu = f[..., 0]
        return GaussianMixture(
            mu, (self.log_noise if log_noise is None else log_noise).exp().expand_as(mu)
        )

    def in_format(self, dtype: torch.dtype) -> Self:
        """Copy with weights and buffers in another floating-point format, without gradients."""
        return copy.deepcopy(self).to(dtype).requires_grad_(False)

    # Log-density over flat parameters
    @property
    def dim(self) -> int:
        """P: the number of weights plus, if learned, one log σ² per task."""
        return len(self.prior_std) + (self.n_tasks if self.learns_noise else 0)

    @property
    def names(self) -> list[str]:
        return []  # weights are unnamed

    def constrain(self, theta: Tensor) -> Tensor:
        return theta

    def _weights(self, theta: Tensor) -> Tensor:
        n = len(self.prior_std)
        # slicing everything would add a copy to its gradient
        return theta if theta.shape[1] == n else theta[:, :n]

    def _split_log_noise(self, theta: Tensor) -> Tensor:
        log_noise = theta[:, len(self.prior_std) :]
        # [K, 1, T]
        return (log_noise if self.learns_noise else self.log_noise.expand(len(theta), -1))[:, None]

    @property
    def flat_prior(self) -> str:
        """The setting that gives log σ² a flat prior; empty if the prior is proper."""
        flat = self.learns_noise and self.noise_spread is None
        return "model.noise_spread=null: flat; set it to a number" if flat else ""

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        """θ [n, P] from the prior (log σ² at its initial value if its prior is flat)."""
        scale = self.prior_std
        if self.learns_noise:
            scale = torch.cat([scale, scale.new_full((self.n_tasks,), self.noise_spread or 0.0)])
        theta = scale * standard_normal((n, self.dim), generator, scale)
        theta[:, len(self.prior_std) :] += self.noise_median
        return theta

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        """log p(y_b|x_b, θ_k) of every row, unscaled: [K, P] -> [K, B]."""
        return self.log_prob(self.outputs(theta, batch.x), batch, self._split_log_noise(theta))

    def log_prior(self, theta: Tensor) -> Tensor:
        """log p(θ_k), normalised: [K, P] -> [K]."""
        z = self._weights(theta) / self.prior_std
        weights = -0.5 * (z * z).sum(-1) - self.log_normaliser
        return weights + self.noise_log_prior(self._split_log_noise(theta)[:, 0])

    def predictive(self, theta: Tensor, x: Tensor) -> Predictive:
        """Predictive of K particles θ [K, P] at x [B, D], or at separate inputs [K, B, D]."""
        return self.output_predictive(self.outputs(theta, x), self._split_log_noise(theta))
