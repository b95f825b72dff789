"""Protocols of posteriors, the only interface for metrics, attacks, figures and files.

An inference method lists in ``provides`` the protocols that its posteriors implement.
"""

from __future__ import annotations

from components.contracts.plugins.words import by_word
from components.contracts.posteriors.labels import (
    Analyses,
    CastablePosterior,
    Defends,
    DensityPosterior,
    DrawsInBulk,
    HoldsDraws,
    HoldsFit,
    HoldsModule,
    Predicts,
    PredictsInReverse,
    Redraws,
    WritesFiles,
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

POSTERIORS = by_word(
    Predicts,
    Redraws,
    HoldsDraws,
    FilteredStates,
    SmoothedStates,
    SmoothedSignal,
    SeriesDraws,
    Forecasts,
    Selects,
    AffineInInputs,
    Played,
    BoundsLikelihood,
    HoldsTopics,
    PredictsRows,
    Analyses,
    WritesFiles,
    Defends,
    HoldsFit,
    HoldsModule,
    DrawsInBulk,
) | {"forecasts_each": StructuralPosterior, "decomposes": StructuralPosterior}

__all__ = [
    "POSTERIORS",
    "Affine",
    "AffineInInputs",
    "Analyses",
    "BoundsLikelihood",
    "CastablePosterior",
    "Defends",
    "DensityPosterior",
    "DrawsInBulk",
    "FilteredStates",
    "ForecastMoments",
    "Forecasts",
    "HoldsDraws",
    "HoldsFit",
    "HoldsModule",
    "HoldsTopics",
    "Part",
    "Played",
    "Predicts",
    "PredictsInReverse",
    "PredictsRows",
    "Redraws",
    "Selects",
    "SeriesDraws",
    "Signal",
    "SmoothedSignal",
    "SmoothedStates",
    "StructuralPosterior",
    "WritesFiles",
]
