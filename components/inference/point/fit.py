"""One-shot estimators in the common loop."""

from __future__ import annotations

from dataclasses import dataclass, replace

from components.contracts.capabilities import Estimator
from components.contracts.capabilities.estimators import Fitted
from components.contracts.posteriors import Predicts
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed, placed
from components.contracts.streams import Rng, seed_from
from components.posteriors.fitted import FittedEstimator
from components.problems.supervised import Supervised
from components.registry import register


@dataclass(frozen=True, kw_only=True)
class FitState:
    """An estimator and its fit."""

    estimator: Estimator = not_checkpointed()
    fitted: Fitted | None = placed()


@register("inference", "fit")
class Fit(Inference[Estimator, Supervised, Batch, FitState]):
    """Fit a one-shot estimator to the whole training set in the first step.

    Source: Hastie, Tibshirani and Friedman (2009), chapter 15."""

    requires = Requirements(kinds={"supervised"}, batch_kind="whole", capabilities={Estimator})
    max_useful_steps = 1

    def init(self, model: Estimator, problem: Supervised, rng: Rng) -> FitState:
        return FitState(estimator=model)

    def step(self, state: FitState, batch: Batch, rng: Rng) -> tuple[FitState, Info]:
        if state.fitted is not None:  # further steps do nothing
            return state, {}
        seed = seed_from(rng.init)
        return replace(state, fitted=state.estimator.fit(batch, seed)), {}

    def posterior(self, state: FitState) -> Predicts:
        assert state.fitted is not None
        return FittedEstimator(state.estimator, state.fitted)
