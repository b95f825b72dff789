"""Base classes of state-space models with the same capabilities."""

from __future__ import annotations

from collections.abc import Set

from components.contracts.capabilities import StateSpace
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.roles.model import M
from components.series.models.unknown import Priors
from components.series.sequence import Sequence


class UnknownParameterModel(Model[Sequence, StateSpace]):
    """State-space model whose unknown parameters are those with a prior in ``unknown``."""

    offers_where = {"parameterised": "unknown"}
    unknown: Priors

    def capabilities(self) -> Set[str]:
        return self.offers | (self.offers_where.keys() if self.unknown.given_priors else set())


class NumberSeriesModel(Model[Sequence, M]):
    """Model of one series of numbers, with a log joint."""

    requires = Requirements(
        kinds={"sequence"},
        refused_traits={
            "several_numbers": "supports only univariate series",
            "class_series": "does not support class numbers",
        },
    )
    offers = {"log_joint", "forecasts_series", "warm_start"}


class AdditiveGaussianModel(Model[Sequence, StateSpace]):
    """State-space model with Gaussian noise added to the state and to the observation."""

    offers = {
        "state_space",
        "transition_density",
        "transition_mean",
        "bounded_observation",
        "power_integral",
        "gaussian_noise",
        "additive_gaussian",
    }


class LinearGaussianModel(Model[Sequence, StateSpace]):
    """State-space model with linear dynamics, linear observations and Gaussian noise."""

    offers = {
        "state_space",
        "transition_density",
        "transition_mean",
        "optimal_proposal",
        "bounded_observation",
        "power_integral",
        "gaussian_noise",
        "additive_gaussian",
        "linear_gaussian",
    }
