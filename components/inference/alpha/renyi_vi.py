"""Variational inference of a network's weights with Rényi's divergence."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.problems import Batch
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.point.descent import frozen
from components.inference.variational.mean_field_vi import (
    MeanField,
    MeanFieldPosterior,
    MeanFieldState,
    WeightNetwork,
    climb,
)
from components.maths.optimizers import Adam
from components.maths.power_mean import log_power_mean
from components.problems.supervised import Supervised
from components.registry import register


@register("inference", "renyi_vi")
class RenyiVI(Inference[WeightNetwork, Supervised, Batch, MeanFieldState]):
    """Rényi variational inference: a mean-field Gaussian over a network's weights that ascends the variational Rényi bound.

        L_α(φ) = (1 − α)⁻¹ log K⁻¹ Σ_k exp (1 − α) w_k,   w_k = N/B Σ_b log p(y_b|x_b, θ_k) + log p(θ_k) − log q(θ_k),  θ_k ~ q

    log σ² is a point, log p(σ²) is added.  α = 1 is variational inference (the mean of w), α = 0 the importance-weighted bound;
    K = 1 is variational inference whatever α.  Of all rows at once its mean is a lower bound on log p(y) for α ≥ 0; of
    minibatches it is none, for w then differs from batch to batch inside the logarithm: Info says ``objective``.

    Source: Li and Turner (2016), sections 3, 4.1 and 4.3."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    needs: ClassVar[frozenset[str]] = frozenset({"network", "weight_space"})
    gives: ClassVar[frozenset[str]] = frozenset({"predicts", "redraws"})

    alpha: NonNegativeFloat
    lr: PositiveFloat
    n_samples: PositiveInt
    n_predict: PositiveInt
    initial_std: PositiveFloat

    def init(self, model: WeightNetwork, problem: Supervised, rng: Rng) -> MeanFieldState:
        q = MeanField(model, self.initial_std)
        return MeanFieldState(q, Adam(q.parameters(), self.lr))

    def objective(self, q: MeanField, batch: Batch, generator: torch.Generator) -> dict[str, Tensor]:
        """L_α and the mean log likelihood of all rows, each []."""
        network, std = q.network, q.log_std.exp()
        theta = q.draw(self.n_samples, generator)  # [K, P]
        noise = (theta - network.theta) / std
        log_ratio = 0.5 * (noise.square() - (theta / network.prior_std).square()).sum(1)  # log p(θ) − log q(θ) [K]
        log_ratio = log_ratio + (q.log_std - network.prior_std.log()).sum()
        log_likelihood = batch.scale * network.log_prob(network.outputs(theta, batch.x), batch).sum(1)  # [K]
        objective = log_power_mean(log_likelihood + log_ratio, 1 - self.alpha) + network.hyperprior()
        return {"objective": objective, "log_likelihood": log_likelihood.mean()}

    def step(self, state: MeanFieldState, batch: Batch, rng: Rng) -> tuple[MeanFieldState, Info]:
        return climb(state, self.objective(state.q, batch, rng.noise), "objective", batch)

    def posterior(self, state: MeanFieldState) -> MeanFieldPosterior:
        return MeanFieldPosterior(frozen(state.q), self.n_predict)
