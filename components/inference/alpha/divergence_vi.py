"""Base class of ``bb_alpha`` and ``renyi_vi``: mean-field Gaussian VI on network weights.

A step ascends an objective.
"""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import WeightSpace
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.point.descent import frozen
from components.inference.variational.ascent import ascend_term
from components.inference.variational.mean_field_vi import (
    MeanField,
    MeanFieldPosterior,
    MeanFieldState,
)
from components.maths.optimizers import Adam
from components.problems.supervised import Supervised


class DivergenceVI(Inference[WeightSpace, Supervised, Batch, MeanFieldState]):
    """Keys and steps; ``objective`` is what the methods differ in.

    log p(θ) − log q(θ) is ``log_scales`` + ``exponents``, of q = N(μ, diag σ²) and p = N(0, diag
    s²)."""

    requires = Requirements(kinds={"supervised"}, capabilities={"network", "weight_space"})
    provides = {"predicts", "redraws"}

    lr: PositiveFloat
    n_samples: PositiveInt
    n_predict: PositiveInt
    initial_std: PositiveFloat

    def init(self, model: WeightSpace, problem: Supervised, rng: Rng) -> MeanFieldState:
        q = MeanField(model, self.initial_std)
        return MeanFieldState(q, Adam(q.parameters(), self.lr))

    def objective(
        self, q: MeanField, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """``objective`` of all rows, which is ascended, and what else is to be told, each []."""
        raise NotImplementedError

    @staticmethod
    def exponents(q: MeanField, theta: Tensor) -> Tensor:
        """½ Σ_p (ε_p² − θ_p²/s_p²), ε = (θ − μ)/σ: θ [K, P] -> [K]."""
        noise = (theta - q.network.theta) / q.log_std.exp()
        return 0.5 * (noise.square() - (theta / q.network.prior_std).square()).sum(1)

    @staticmethod
    def log_scales(q: MeanField) -> Tensor:
        """Σ_p log σ_p/s_p []."""
        return (q.log_std - q.network.prior_std.log()).sum()

    def step(self, state: MeanFieldState, batch: Batch, rng: Rng) -> tuple[MeanFieldState, Info]:
        return state, ascend_term(
            state.optimizer, self.objective(state.q, batch, rng.noise), "objective", batch
        )

    def posterior(self, state: MeanFieldState) -> MeanFieldPosterior:
        return MeanFieldPosterior(frozen(state.q), self.n_predict)
