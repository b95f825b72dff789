"""SWA: one network at the mean of the weights along an optimisation path."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.capabilities import Penalised
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.inference.averaging.path import (
    AveragedPath,
    copy_frozen,
    training_input_batches,
    weights,
)
from components.inference.point.descent import descend, frozen
from components.maths.optimizers import Optimizer
from components.posteriors.point_estimate import PointEstimate
from components.problems.supervised import Supervised
from components.registry import register


@dataclass(frozen=True, kw_only=True)
class SwaState:
    """A network on its way, and the mean of the weights that were collected."""

    network: Penalised
    optimizer: Optimizer
    shown: list[Tensor] = rebuilt()  # rows to recompute batch normalisation from
    t: int = 0  # steps done
    n: int = 0  # points collected
    mean: Tensor  # θ̄ [P]


@register("inference", "swa")
class SWA(Inference[Penalised, Supervised, Batch, SwaState], AveragedPath):
    """Stochastic weight averaging: one network at the mean weights of a non-decaying descent.

        θ_t = θ_{t−1} − lr_t · step(−N⁻¹ ∇ log p(θ, y))
        θ̄ ← (n θ̄ + θ_t)/(n + 1)                   every ``every`` steps after ``burn_in``

    Steps are gradient descent or Adam, with dropout if the model has it.  The mean is taken
    over the points passed when the steps no longer shrink.  p(y*|x*) = p(y*|x*, θ̄): one
    network predicts, without dropout.  If it has batch normalisation, a pass over training
    rows at θ̄ recomputes the statistics.  It is not an ensemble: that is
    ``iterate_ensemble``; a Gaussian around θ̄ is ``swag``.  Before the first point is
    collected, the current network predicts.

    Raises:
        NumericalError: a collected point is not finite.

    Source: Izmailov, Podoprikhin, Garipov, Vetrov and Wilson (2018), Algorithm 1; Gallego
    (2021), section 1.3.4.
    """

    requires = Requirements(kinds={"supervised"}, capabilities={"network", "penalised"})
    provides = {"predicts"}

    norm_rows: PositiveInt | None

    def init(self, model: Penalised, problem: Supervised, rng: Rng) -> SwaState:
        return SwaState(
            network=model,
            optimizer=self.build_optimizer(model.parameters()),
            shown=training_input_batches(problem, self.norm_rows),
            mean=torch.zeros_like(weights(model)),
        )

    def step(self, state: SwaState, batch: Batch, rng: Rng) -> tuple[SwaState, Info]:
        state.optimizer.settings["lr"] = self.rate_at(state.t)
        info = descend(state.network, state.optimizer, batch, rng.noise)
        state = replace(state, t=state.t + 1)
        if self.is_collection_step(state.t):
            n = state.n
            state = replace(
                state, n=n + 1, mean=(n * state.mean + weights(state.network)) / (n + 1)
            )
        return state, info | {"collected": state.n}

    def posterior(self, state: SwaState) -> PointEstimate:
        if state.n == 0:
            return PointEstimate(frozen(state.network))
        return PointEstimate(copy_frozen(state.network, state.mean, state.shown))
