"""A fitted estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from components.contracts.capabilities import Estimator
from components.contracts.capabilities.estimators import Fitted
from components.contracts.predictive import Predictive

E = TypeVar("E", bound=Estimator)


@dataclass(frozen=True)
class FittedEstimator(Generic[E]):
    """An estimator and its fit."""

    estimator: E
    fitted: Fitted

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """The estimator's own predictive at x [B, D]."""
        return self.estimator.predict_fitted(self.fitted, x)
