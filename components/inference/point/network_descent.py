"""Base of methods that train one network by descent on minus its log joint."""

from __future__ import annotations

from typing import Any, Generic

from typing_extensions import TypeVar

from components.contracts.capabilities import Penalised
from components.contracts.posteriors import Predicts
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference
from components.contracts.streams import Rng
from components.inference.point.descent import DescentKeys, DescentState, frozen
from components.posteriors.point_estimate import PointEstimate
from components.problems.supervised import Supervised

D = TypeVar("D", bound=DescentState, default=DescentState)


class NetworkDescent(Inference[Penalised, Supervised, Batch, D], DescentKeys, Generic[D]):
    """Keys, start and posterior (the current network); subclasses define ``step``."""

    requires = Requirements(kinds={"supervised"}, capabilities={Penalised})

    def init(self, model: Penalised, problem: Supervised, rng: Rng) -> Any:
        return DescentState(model, self.build_optimizer(model.parameters()))

    def posterior(self, state: D) -> Predicts:
        return PointEstimate(frozen(state.network))
