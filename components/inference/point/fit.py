"""One-shot estimators in the common loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from components.contracts.roles import Inference, Info, Rng
from components.posteriors.predictive import Predictive
from components.problems.supervised import Batch, Supervised
from components.registry import register
from components.trouble import Misfit


@dataclass(frozen=True)
class Fitted:
    """An estimator and what it learnt."""

    estimator: Any
    fitted: dict[str, Tensor]

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """The estimator's own predictive at x [B, D]."""
        return self.estimator.predict(self.fitted, x)


@register("inference", "fit")
class Fit(Inference):
    """Fits an estimator that learns in one go, from the whole training set, at the first step.

    Raises:
        ValueError: the step is given a part of the data only (dataset.batch_size must be null).

    Source: Hastie, Tibshirani and Friedman (2009), chapter 15."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    needs: ClassVar[frozenset[str]] = frozenset({"estimator"})

    def init(self, model: Any, problem: Supervised, rng: Rng) -> dict[str, Any]:
        if problem.batch_size is not None and problem.batch_size < problem.n:
            raise Misfit("dataset.batch_size: inference=fit learns from all rows at once; set dataset.batch_size=null")
        return {"estimator": model, "fitted": None}

    def step(self, state: dict[str, Any], batch: Batch, rng: Rng) -> tuple[dict[str, Any], Info]:
        if state["fitted"] is not None:  # a further step has nothing to add
            return state, {}
        seed = int(torch.randint(2**31, (), generator=rng.init))
        return {**state, "fitted": state["estimator"].fit(batch, seed)}, {}

    def posterior(self, state: dict[str, Any]) -> Fitted:
        return Fitted(state["estimator"], state["fitted"])
