"""Protocols of posteriors: metrics, attacks, figures and files read nothing else.

An inference method lists in ``provides`` the protocols that its posteriors implement.
"""

from __future__ import annotations

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

POSTERIORS = {
    "predicts": Predicts,
    "redraws": Redraws,
    "holds_draws": HoldsDraws,
    "filtered_states": FilteredStates,
    "smoothed_states": SmoothedStates,
    "smoothed_signal": SmoothedSignal,
    "series_draws": SeriesDraws,
    "forecasts": Forecasts,
    "forecasts_each": StructuralPosterior,
    "decomposes": StructuralPosterior,
    "selects": Selects,
    "affine_in_inputs": AffineInInputs,
    "played": Played,
    "bounds_likelihood": BoundsLikelihood,
    "holds_topics": HoldsTopics,
    "predicts_rows": PredictsRows,
    "analyses": Analyses,
    "writes_files": WritesFiles,
    "defends": Defends,
    "holds_fit": HoldsFit,
    "holds_module": HoldsModule,
    "draws_in_bulk": DrawsInBulk,
}

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
