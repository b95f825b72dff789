"""Posterior predictives with fresh draws for each prediction."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.contracts.posteriors import Predicts
from components.contracts.predictive import Predictive


@dataclass(frozen=True)
class Held:
    """A posterior with fresh draws for each prediction, held at fixed draws.

    The prediction for a row then depends only on x.
    """

    posterior: Predicts

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Predictive at x [B, D]; the generator is not used."""
        return self.posterior.predict(x, torch.Generator(x.device).manual_seed(0))


@dataclass(frozen=True, kw_only=True)
class DrawsByNumber:
    """Posterior predictive with ``n_predict`` fresh draws for each prediction."""

    n_predict: int

    @abstractmethod
    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """p(y|x) at x [B, D], a mixture of ``n_predict`` draws."""

    def some(self, n: int, generator: torch.Generator | None) -> Predicts:
        """n draws for each prediction: fresh ones, or always the same without a generator."""
        return hold(replace(self, n_predict=n), generator)


def hold(posterior: Predicts, generator: torch.Generator | None) -> Predicts:
    """The posterior itself, with fresh draws for each prediction; without a generator a copy with
    fixed draws."""
    return Held(posterior) if generator is None else posterior
