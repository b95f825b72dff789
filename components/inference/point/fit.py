"""One-shot estimators in the common loop."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from components.contracts.problems import Batch, Sees
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.posteriors.fitted import Fitted
from components.problems.supervised import Supervised
from components.registry import register
from components.trouble import Misfit


@register("inference", "fit")
class Fit(Inference):
    """Fits an estimator that learns in one go, from the whole training set, at the first step.

    Raises:
        ValueError: the step is given a part of the data only (dataset.batch_size must be null).

    Source: Hastie, Tibshirani and Friedman (2009), chapter 15."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    sees: ClassVar[Sees] = "whole"
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
