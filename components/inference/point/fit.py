"""One-shot estimators in the common loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from components.contracts.capabilities import Estimator
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import rebuilt
from components.contracts.streams import Rng, seed_from
from components.posteriors.fitted import FittedEstimator
from components.problems.supervised import Supervised
from components.registry import register


@dataclass(frozen=True, kw_only=True)
class FitState:
    """An estimator, and what it has learnt."""

    estimator: Estimator = rebuilt()
    device: torch.device = rebuilt()  # of the run, which may go on elsewhere than it began
    fitted: dict[str, Tensor] | None = None  # None: nothing yet

    @property
    def learnt(self) -> dict[str, Tensor]:
        """What the estimator has learned, where the run is."""
        assert self.fitted is not None, "nothing is learnt before the first step"
        return {name: part.to(self.device) for name, part in self.fitted.items()}


@register("inference", "fit")
class Fit(Inference[Estimator, Supervised, Batch, FitState]):
    """Fits an estimator that learns in one go, from the whole training set, at the first step.

    Source: Hastie, Tibshirani and Friedman (2009), chapter 15."""

    requires = Requirements(
        kinds=frozenset({"supervised"}), batch_kind="whole", capabilities=frozenset({"estimator"})
    )
    max_useful_steps: ClassVar[int | None] = 1
    provides: ClassVar[frozenset[str]] = frozenset({"predicts"})

    def init(self, model: Estimator, problem: Supervised, rng: Rng) -> FitState:
        return FitState(estimator=model, device=problem.train.x.device)

    def step(self, state: FitState, batch: Batch, rng: Rng) -> tuple[FitState, Info]:
        if state.fitted is not None:  # a further step has nothing to add
            return state, {}
        seed = seed_from(rng.init)
        return replace(state, fitted=state.estimator.fit(batch, seed)), {}

    def posterior(self, state: FitState) -> FittedEstimator:
        return FittedEstimator(state.estimator, state.learnt)
