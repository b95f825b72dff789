"""Descent and prediction with dropout, shared by ``mc_dropout`` and ``mc_dropout_alpha``."""

from __future__ import annotations

from typing import Any

from pydantic import PositiveInt

from components.contracts.capabilities import Dropout, Penalised
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.inference.point.descent import DescentState, frozen
from components.inference.point.network_descent import NetworkDescent
from components.posteriors.variational import DropoutPosterior
from components.problems.supervised import Supervised


class DropoutDescent(NetworkDescent):
    """Keys, start and posterior; subclasses define ``step``.

    Raises:
        ConfigMismatchError: the model's dropout is 0, so nothing would be random."""

    requires = Requirements(capabilities={Penalised, Dropout})

    n_predict: PositiveInt

    def init(self, model: Penalised, problem: Supervised, rng: Rng) -> Any:
        if isinstance(model, Dropout) and model.dropout == 0:
            raise ConfigMismatchError(
                "model.dropout: with 0, MC dropout has no randomness; set it above 0 or use "
                "inference=map"
            )
        return super().init(model, problem, rng)

    def posterior(self, state: DescentState) -> DropoutPosterior:
        return DropoutPosterior(frozen(state.network), n_predict=self.n_predict)
