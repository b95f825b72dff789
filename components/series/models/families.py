"""Base classes of models of series with the same keys or requirements."""

from __future__ import annotations

from components.contracts.capabilities import Parameterised, StateSpace
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.roles.component import M
from components.series.models.unknown import Priors
from components.series.sequence import Sequence


class UnknownParameterModel(Model[Sequence, StateSpace]):
    """State-space model whose unknown parameters are those with a prior in ``unknown``."""

    offers_where = {Parameterised: "unknown"}
    unknown: Priors

    def is_enabled(self, capability: type) -> bool:
        return bool(self.unknown.given_priors)


class NumberSeriesModel(Model[Sequence, M]):
    """Model of one series of numbers, with a log joint."""

    requires = Requirements(
        kinds={"sequence"},
        refused_traits={
            "several_numbers": "supports only univariate series",
            "class_series": "does not support class numbers",
        },
    )
