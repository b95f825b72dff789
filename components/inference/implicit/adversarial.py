"""Shared code of ``aadm`` and ``avb``: weight generator, discriminator and step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Literal

import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor
from typing_extensions import TypeVar

from components.contracts.capabilities import OwnInputs, WeightSpace
from components.contracts.checks import Check
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import AtLeastTwo, FinishedRun, Inference, Info
from components.contracts.streams import Rng
from components.gradients.by_parameter import Terms
from components.inference.alpha.power_mean import log_power_mean
from components.inference.gaussian_weights.mean_field import MeanFieldPosterior
from components.inference.implicit.contrast import (
    Contrast,
    PriorContrast,
    contrast,
    discrimination_loss,
    discriminator_checks,
)
from components.inference.implicit.generator import Generator, leaky_perceptron
from components.inference.point.descent import frozen
from components.inference.variational.ascent import ascend_term, warmup_weight
from components.maths.exponential.standard_draws import normal_like
from components.maths.optimizers import Adam
from components.models.latent.perceptron import Perceptron
from components.problems.supervised import Supervised

Q = TypeVar("Q", default=Generator)
T = TypeVar("T", default=Perceptron)


@dataclass(frozen=True)
class AdversarialState(Generic[Q, T]):
    """q(θ), T, and their optimizers; an unused discriminator has no loss."""

    q: Q
    optimizer: Adam
    discriminator: T | None
    discriminator_optimizer: Adam | None
    t: int = 0


class Adversarial(Inference[WeightSpace, Supervised, Batch, AdversarialState]):
    """Keys and steps of adversarial posteriors; the methods differ in the power of the
    likelihood."""

    requires = Requirements(
        kinds={"supervised"},
        capabilities={WeightSpace, OwnInputs},
    )

    discriminator: Literal["network", "prior", "none"]
    rows: Literal["shared", "own"]
    n_samples: AtLeastTwo
    n_predict: PositiveInt
    noise_dim: PositiveInt
    noise_log_variance: float
    generator_widths: list[PositiveInt]
    discriminator_widths: list[PositiveInt]
    initial_std: PositiveFloat
    lr: PositiveFloat
    discriminator_lr: PositiveFloat
    warmup: NonNegativeInt

    @property
    def power(self) -> float:
        """a of the data term log (K⁻¹ Σ_k p(y_b|x_b, θ_k)^a)^{1/a} of a row."""
        raise NotImplementedError

    @property
    def powers(self) -> list[float]:
        """Several positive powers, with a separate posterior for each; empty for a single
        posterior."""
        return []

    def init(self, model: WeightSpace, problem: Supervised, rng: Rng) -> AdversarialState:
        q = Generator(
            model,
            self.noise_dim,
            self.generator_widths,
            self.initial_std,
            self.noise_log_variance,
            rng,
        )
        optimizer = Adam([p for p in q.parameters() if p.requires_grad], self.lr)
        if self.discriminator == "none":
            return AdversarialState(q, optimizer, None, None)
        theta = model.theta.detach()
        T = leaky_perceptron(
            [len(theta), *self.discriminator_widths, 1], self.initial_std, rng, theta
        )
        return AdversarialState(q, optimizer, T, Adam(T.parameters(), self.discriminator_lr))

    def draws(self, n_rows: int) -> int:
        """Number of weight draws for a step with the given number of rows."""
        return self.n_samples if self.rows == "shared" else self.n_samples * n_rows

    def sample(self, q: Generator, batch: Batch, noise: Tensor) -> tuple[Tensor, Tensor]:
        """θ from ``noise``, and log p(y_b|x_b, θ) [K, B] of K draws: the same for all rows [K, P],
        or separate ones for each row [K·B, P]."""
        K = self.n_samples
        B = len(batch.x)
        network = q.network
        theta = q.of(noise)
        if self.rows == "shared":
            return theta, network.log_prob(network.outputs(theta, batch.x), batch)
        x = batch.x.expand(K, -1, -1).reshape(K * B, 1, -1)
        f = network.outputs(theta, x).squeeze(1).unflatten(0, (K, B))  # [K, B, T, C]
        return theta, network.log_prob(f, batch)

    def compare(self, theta: Tensor, prior_std: Tensor) -> Contrast:
        """The distribution that T compares the draws θ [K, P] with."""
        if self.discriminator == "prior":
            return PriorContrast(theta / prior_std)
        return contrast(theta)

    def objective(
        self, state: AdversarialState, batch: Batch, generator: torch.Generator
    ) -> tuple[Terms, Contrast]:
        """N/B Σ_b data term − β KL, and its parts, each []."""
        # at the optimum E_q[∇_φ T] = 0 (2.2)
        T = None if state.discriminator is None else state.discriminator.frozen_forward
        noise = state.q.noise(self.draws(batch.n_rows), generator)
        return self.terms(state.q, T, batch, noise, warmup_weight(state.t, self.warmup), self.power)

    def terms(
        self,
        q: Generator,
        T: Callable[[Tensor], Tensor] | None,
        batch: Batch,
        noise: Tensor,
        beta: float,
        power: float | Tensor,
    ) -> tuple[Terms, Contrast]:
        """Objective and its parts for given noise, β and power (positive if a tensor); T is
        fixed."""
        theta, log_likelihood = self.sample(q, batch, noise)
        comparison = self.compare(theta, q.network.prior_std)
        ratio = 0.0 if T is None else T(comparison.z_scores).mean()
        fit = batch.scale * log_power_mean(log_likelihood, power).sum()
        divergence = comparison.kl(q.network.prior_std, ratio)
        objective = fit - beta * divergence + q.network.hyperprior()
        return {"objective": objective, "data_term": fit, "kl_estimate": divergence}, comparison

    def step(
        self, state: AdversarialState, batch: Batch, rng: Rng
    ) -> tuple[AdversarialState, Info]:
        terms, comparison = self.objective(state, batch, rng.noise)
        info = ascend_term(state.optimizer, terms, "objective", batch)
        if state.discriminator is not None and state.discriminator_optimizer is not None:
            ours = comparison.z_scores.detach()
            noise = normal_like(ours, rng.noise)
            loss = discrimination_loss(state.discriminator, ours, noise)
            state.discriminator_optimizer.descend(loss)
            info["discriminator_loss"] = loss.detach()
        return replace(state, t=state.t + 1), info

    def checks(self, run: FinishedRun) -> list[Check]:
        return discriminator_checks(self, run.trace)

    def posterior(self, state: AdversarialState) -> MeanFieldPosterior:
        return MeanFieldPosterior(q=frozen(state.q), n_predict=self.n_predict)
