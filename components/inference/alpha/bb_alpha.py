"""Black-box α-divergence minimisation for the weights of a network."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field, PositiveFloat, PositiveInt
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


@register("inference", "bb_alpha")
class BlackBoxAlpha(Inference[WeightNetwork, Supervised, Batch, MeanFieldState]):
    """Black-box α: a mean-field Gaussian over a network's weights by local α-divergences with one factor tied over all rows.

        L(φ) = log Z_q − log Z_p + α⁻¹ Σ_n log E_q[(p(y_n|x_n, θ) / f̃(θ))^α],   q ∝ f̃^N p,   θ_k ~ q shared by the rows

    with E_q by K draws and Σ_n by N/B Σ_b; log σ² is a point, log p(σ²) is added.  With q = N(μ, diag σ²), p = N(0, diag s²)
    and θ = μ + σ ∘ ε it is Σ_p log σ_p/s_p + N/(B α) Σ_b log K⁻¹ Σ_k exp α {ℓ_bk − N⁻¹ Σ_p ½ (θ_kp²/s_p² − ε_kp²)}, in which
    μ²/σ² has cancelled.  α → 0 is variational inference, α = 1 near expectation propagation.
    The logarithm of a mean of K is biased.
    Info: ``objective``, which is no bound on log p(y) unless α → 0, and ``log_likelihood``.

    Source: Hernández-Lobato, Li, Rowland, Hernández-Lobato, Bui and Turner (2016), section 3; Rodríguez Santana and
    Hernández-Lobato (2020), eq. (22)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    needs: ClassVar[frozenset[str]] = frozenset({"network", "weight_space"})
    gives: ClassVar[frozenset[str]] = frozenset({"predicts", "redraws"})

    alpha: Annotated[float, Field(gt=0, le=1)]
    lr: PositiveFloat
    n_samples: PositiveInt
    n_predict: PositiveInt
    initial_std: PositiveFloat

    def init(self, model: WeightNetwork, problem: Supervised, rng: Rng) -> MeanFieldState:
        q = MeanField(model, self.initial_std)
        return MeanFieldState(q, Adam(q.parameters(), self.lr))

    def objective(self, q: MeanField, batch: Batch, generator: torch.Generator) -> dict[str, Tensor]:
        """L and the mean log likelihood of all rows, each []."""
        network, std = q.network, q.log_std.exp()
        theta = q.draw(self.n_samples, generator)  # [K, P]
        noise = (theta - network.theta) / std
        factor = 0.5 * ((theta / network.prior_std).square() - noise.square()).sum(1) / (batch.scale * len(batch.x))
        ell = network.log_prob(network.outputs(theta, batch.x), batch)  # [K, B]
        tilted = batch.scale * log_power_mean(ell - factor[:, None], self.alpha).sum()
        objective = (q.log_std - network.prior_std.log()).sum() + tilted + network.hyperprior()
        return {"objective": objective, "log_likelihood": batch.scale * ell.mean(0).sum()}

    def step(self, state: MeanFieldState, batch: Batch, rng: Rng) -> tuple[MeanFieldState, Info]:
        return climb(state, self.objective(state.q, batch, rng.noise), "objective", batch)

    def posterior(self, state: MeanFieldState) -> MeanFieldPosterior:
        return MeanFieldPosterior(frozen(state.q), self.n_predict)
