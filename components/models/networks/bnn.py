"""Bayesian neural network with weight and noise precisions that may be learned."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.predictive import Predictive
from components.contracts.problems import Batch
from components.contracts.requirements import SUPERVISED
from components.contracts.roles import LearnableScale, Model
from components.contracts.streams import Rng
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal, standard_uniform
from components.models.networks.activations import Activation
from components.models.networks.dense_network import DenseNetwork
from components.problems.supervised import Supervised
from components.registry import register

Gamma = tuple[float, float]  # shape a and rate b


def log_gamma_density(log_precision: Tensor, prior: Gamma) -> Tensor:
    """Log density of log γ for γ ~ Gamma(a, b): a log b − log Γ(a) + a log γ − bγ, with the
    Jacobian γ."""
    a, b = prior
    return a * math.log(b) - math.lgamma(a) + a * log_precision - b * log_precision.exp()


class BayesianNetwork(nn.Module):
    """θ [K, P] holds the weights w, then log λ if it is learned, then u_t of every task if the log
    γ_t = c u_t are learned."""

    scales: Tensor
    precisions: Tensor
    own_inputs = True  # K particles may have separate inputs, x [K, B, D]

    def __init__(
        self,
        network: DenseNetwork,
        scales: Tensor,
        weight_precision: Gamma | None,
        noise_precision: Gamma | None,
        noise_unit: float,
        start: Literal["prior", "network"],
    ):
        super().__init__()
        self.network = network
        self.start = start
        self.noise_unit = noise_unit
        # prior standard deviation of every weight for λ = 1 [n]
        self.register_buffer("scales", scales)
        self.register_buffer("precisions", scales**-2, persistent=False)
        self.weight_precision = weight_precision
        self.noise_precision = noise_precision
        self.n_weights = len(scales)
        tasks = 0 if noise_precision is None else network.n_tasks
        self.pieces = [self.n_weights, 0 if weight_precision is None else 1, tasks]
        self.dim = sum(self.pieces)
        self.names: list[str] = []  # weights are unnamed

    def split(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """w [K, n], log λ [K, 1 or 0], log γ [K, T or 0]."""
        w, log_lambda, u = theta.split(self.pieces, 1)
        return w, log_lambda, self.noise_unit * u

    def constrain(self, theta: Tensor) -> Tensor:
        """w, λ, γ."""
        w, log_lambda, log_gamma = self.split(theta)
        return torch.cat([w, log_lambda.exp(), log_gamma.exp()], 1)

    def log_noise(self, theta: Tensor) -> Tensor:
        """log σ_t² = −log γ_t, [K, 1, T]."""
        log_gamma = self.split(theta)[2]
        log_variance = self.network.log_noise.expand(len(theta), -1)
        return (log_variance if self.noise_precision is None else -log_gamma).unsqueeze(1)

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        return self.network.log_prob(
            self.network.outputs(theta, batch.x), batch, self.log_noise(theta)
        )

    def log_prior(self, theta: Tensor) -> Tensor:
        w, log_lambda, log_gamma = self.split(theta)
        square = (w / self.scales).square().sum(1)  # [K]
        constant = -self.scales.log().sum() - 0.5 * self.n_weights * LOG_2PI
        value = constant - 0.5 * square
        if self.weight_precision is not None:
            log_lambda = log_lambda[:, 0]
            value = constant + 0.5 * self.n_weights * log_lambda - 0.5 * log_lambda.exp() * square
            value = value + log_gamma_density(log_lambda, self.weight_precision)
        if self.noise_precision is not None:
            of_u = log_gamma_density(log_gamma, self.noise_precision) + math.log(self.noise_unit)
            value = value + of_u.sum(1)
        return value

    def score(self, theta: Tensor, batch: Batch, value: bool) -> tuple[Tensor, Tensor]:
        """Log joint [K], empty without ``value``, and its gradient [K, P] in closed form."""
        gradient = torch.empty_like(theta)
        likelihood, by_noise = self.network.pull(
            theta, batch, self.log_noise(theta)[:, 0], gradient, value
        )
        (w, log_lambda, log_gamma), (of_w, of_lambda, of_u) = (
            self.split(theta),
            gradient.split(self.pieces, 1),
        )
        pulled = w * self.precisions  # minus the gradient of the log prior for λ = 1
        if self.weight_precision is None:
            of_w.sub_(pulled)
        else:
            lam, (a, b) = log_lambda.exp(), self.weight_precision
            half_square = 0.5 * (w * pulled).sum(1, keepdim=True)
            of_w.addcmul_(pulled, lam, value=-1)
            of_lambda.copy_(0.5 * self.n_weights + a - lam * (half_square + b))
        if self.noise_precision is not None:
            a, b = self.noise_precision
            of_u.copy_(self.noise_unit * (a - b * log_gamma.exp() - by_noise))  # log σ² = −log γ
        return likelihood + self.log_prior(theta) if value else likelihood, gradient

    def _normal(self, n: int, generator: torch.Generator) -> Tensor:
        return standard_normal((n, self.n_weights), generator, self.scales)

    def _log_precision(
        self, prior: Gamma, shape: tuple[int, int], generator: torch.Generator
    ) -> Tensor:
        a = torch.full(shape, prior[0], dtype=self.scales.dtype, device=generator.device)
        # Γ(a, 1) is Γ(a + 1, 1) times U^{1/a}: its logarithm stays finite when a draw underflows
        u = standard_uniform(shape, generator, a)
        log_unit = (
            torch._standard_gamma(a + 1, generator=generator).log() + (1 - u).log() / prior[0]
        )
        return (log_unit - math.log(prior[1])).to(self.scales.device)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        parts = [self.scales * self._normal(n, generator)]
        if self.weight_precision is not None:
            parts.append(self._log_precision(self.weight_precision, (n, 1), generator))
            parts[0] = parts[0] * (-0.5 * parts[1]).exp()
        if self.noise_precision is not None:
            log_gamma = self._log_precision(
                self.noise_precision, (n, self.network.n_tasks), generator
            )
            parts.append(log_gamma / self.noise_unit)
        return torch.cat(parts, 1)

    def sample_start(self, n: int, generator: torch.Generator) -> Tensor:
        """Starting points of chains, [n, P]: prior draws, or standard initial weights of networks.

        In the latter, a weight into a unit of ``fan_in`` inputs ~ N(0, 1/(fan_in + 1)), biases are
        0,
        λ is the precision of these weights, and γ = 1, which suits standardised labels.
        """
        if self.start == "prior":
            return self.sample_prior(n, generator)
        scales = torch.cat(
            [
                part
                for out, inside in self.network.shapes
                for part in (
                    self.scales.new_full((out * inside,), (inside + 1) ** -0.5),
                    self.scales.new_zeros(out),
                )
            ]
        )
        w = scales * self._normal(n, generator)
        # maximises p(w | λ), [n, 1]
        precision = self.n_weights / (w / self.scales).square().sum(1, keepdim=True)
        log_lambda = precision.log()[:, : self.pieces[1]]
        return torch.cat([w, log_lambda, w.new_zeros(n, self.pieces[2])], 1)

    def predictive(self, theta: Tensor, x: Tensor) -> Predictive:
        """Predictive of K networks θ [K, P] at x [B, D]."""
        return self.network.output_predictive(self.network.outputs(theta, x), self.log_noise(theta))


@register("model", "bnn")
class BNN(Model[Supervised, BayesianNetwork]):
    """Bayesian neural network of any widths, with fixed or learned precisions of weights and noise.

    y_t ~ N(f_t(x; w), 1/γ_t) or softmax(f_t), f a feed-forward network; every weight and bias ~
    N(0, s_l²/λ), λ = 1 or ~ Gamma(a, b), γ_t known or ~ Gamma(a, b).  s_l is s, or s/√fan_in for
    weights with ``scaling`` fan_in.  Samplers use θ = (w, log λ, log γ / c) [K, P], with the
    Jacobians; c > 1 makes γ, which moves slowly for small data sets, move c² times as fast relative
    to the weights.

    Source: Liu & Wang (2016), section 5; Hernández-Lobato & Adams (2015), section 2."""

    requires = SUPERVISED

    widths: list[PositiveInt]
    activation: Activation
    prior_std: PositiveFloat
    scaling: Literal["none", "fan_in"]
    precision: Literal["fixed", "learned"]
    precision_shape: PositiveFloat
    precision_rate: PositiveFloat
    noise: LearnableScale
    noise_shape: PositiveFloat
    noise_rate: PositiveFloat
    noise_unit: PositiveFloat
    start: Literal["prior", "network"]

    def build(self, problem: Supervised, rng: Rng) -> BayesianNetwork:
        learned = self.noise == "learned" and problem.target == "real"
        network = DenseNetwork(
            problem,
            rng,
            widths=self.widths,
            activation=self.activation,
            dropout=0.0,
            prior_std=self.prior_std,
            noise=1.0 if self.noise == "learned" else self.noise,
            noise_init=1.0,
            noise_spread=None,
        ).requires_grad_(False)
        fans = [inside if self.scaling == "fan_in" else 1 for _, inside in network.shapes]
        scales = torch.cat(
            [
                piece
                for (out, inside), fan in zip(network.shapes, fans, strict=True)
                for piece in (
                    network.theta.new_full((out * inside,), self.prior_std * fan**-0.5),
                    network.theta.new_full((out,), self.prior_std),
                )
            ]
        )
        return BayesianNetwork(
            network,
            scales,
            (self.precision_shape, self.precision_rate) if self.precision == "learned" else None,
            (self.noise_shape, self.noise_rate) if learned else None,
            self.noise_unit,
            self.start,
        )
