"""Protocols of posteriors, the only interface for metrics, attacks, figures and files.

An inference method lists in ``provides`` the protocols that its posteriors implement.
"""

from __future__ import annotations

from typing_extensions import is_protocol

from components.contracts.posteriors.labels import (
    Analyses,
    CastablePosterior,
    Defends,
    DensityPosterior,
    HoldsDraws,
    HoldsFit,
    HoldsModule,
    Predicts,
    PredictsInReverse,
    Redraws,
    WritesFiles,
    module_of,
)
from components.contracts.posteriors.play import Played
from components.contracts.posteriors.rows import BoundsLikelihood, HoldsTopics, PredictsRows
from components.contracts.posteriors.series import (
    Affine,
    AffineInInputs,
    FilteredStates,
    ForecastMoments,
    Forecasts,
    Part,
    Selects,
    SeriesDraws,
    Signal,
    SmoothedSignal,
    SmoothedStates,
    StructuralPosterior,
)

# All protocols here except those with members that may return None.
POSTERIORS = frozenset(
    value for value in tuple(globals().values()) if isinstance(value, type) and is_protocol(value)
) - {CastablePosterior, DensityPosterior, PredictsInReverse}
