"""Capabilities: queries that a built model supports, listed in a method's ``requires``.

A name in ``offers``, ``requires.capabilities`` or ``provides`` is the snake-case name of a protocol
here. ``check_offered`` is the only function that inspects an object for its capabilities; all other
code uses ``isinstance`` with a protocol."""

from __future__ import annotations

from collections.abc import Set

from components.contracts.capabilities.densities import (
    ClosedFormScore,
    Collapsible,
    Conditionals,
    GaussianPrior,
    LogJoint,
    OwnInputs,
    ThetaPredictive,
    TrainingStart,
    WarmStart,
)
from components.contracts.capabilities.estimators import (
    BetaPosterior,
    Conjugate,
    Estimator,
    Generative,
    LinearSmoother,
)
from components.contracts.capabilities.games import NoiseDensity, NoiseLaw, QFunction
from components.contracts.capabilities.latent import (
    BernoulliLayers,
    ClassConditional,
    Decoder,
    DrawsWithDensity,
    LatentVariable,
    LogRatio,
    RowGuide,
)
from components.contracts.capabilities.mean_field import Clustered, CoordinateAscent, PointMasses
from components.contracts.capabilities.networks import (
    AffineLayers,
    BatchNormalised,
    Dropout,
    Network,
    Penalised,
    WeightSpace,
)
from components.contracts.capabilities.partitions import DirichletProcess
from components.contracts.capabilities.sequences import (
    AdditiveGaussian,
    AutoregressiveVolatility,
    BoundedObservation,
    CategoricalSeries,
    ForecastsSeries,
    GaussianNoise,
    KnownParameters,
    KnownResponse,
    LinearGaussian,
    OptimalProposal,
    Parameterised,
    PowerIntegral,
    SeriesConditionals,
    SplitNormal,
    StateSpace,
    StructuralSeries,
    TerrainAided,
    TransitionDensity,
    TransitionMean,
)
from components.contracts.capabilities.topics import TopicModel
from components.contracts.capabilities.variational import (
    ArdWeights,
    Elbo,
    FactoredGuide,
    GivenFunction,
    GlobalLatent,
    Hyperparameters,
    InducingInputs,
    LocationScale,
    NoiseParameters,
    NormalNoise,
    PathDerivative,
    Pathwise,
    RowContext,
    VariationalLayers,
)
from components.contracts.games import NumberedStates
from components.contracts.plugins.words import by_word

CAPABILITIES: dict[str, type] = by_word(
    LogJoint,
    ThetaPredictive,
    GaussianPrior,
    WarmStart,
    TrainingStart,
    ClosedFormScore,
    Collapsible,
    OwnInputs,
    Conditionals,
    Conjugate,
    BetaPosterior,
    LinearSmoother,
    DirichletProcess,
    CoordinateAscent,
    PointMasses,
    Clustered,
    Elbo,
    VariationalLayers,
    GivenFunction,
    NoiseParameters,
    Hyperparameters,
    ArdWeights,
    InducingInputs,
    Pathwise,
    NormalNoise,
    LocationScale,
    GlobalLatent,
    RowContext,
    PathDerivative,
    LogRatio,
    FactoredGuide,
    DrawsWithDensity,
    RowGuide,
    LatentVariable,
    ClassConditional,
    BernoulliLayers,
    Decoder,
    TopicModel,
    Network,
    Penalised,
    Dropout,
    BatchNormalised,
    WeightSpace,
    AffineLayers,
    Estimator,
    Generative,
    StateSpace,
    TransitionDensity,
    TransitionMean,
    OptimalProposal,
    BoundedObservation,
    GaussianNoise,
    AdditiveGaussian,
    Parameterised,
    ForecastsSeries,
    CategoricalSeries,
    KnownParameters,
    KnownResponse,
    PowerIntegral,
    LinearGaussian,
    SplitNormal,
    TerrainAided,
    AutoregressiveVolatility,
    SeriesConditionals,
    StructuralSeries,
    NumberedStates,
    QFunction,
    NoiseLaw,
    NoiseDensity,
) | {"structured_ascent": CoordinateAscent, "draws_with_derivative": DrawsWithDensity}


def missing(thing: object, names: Set[str]) -> list[str]:
    """Sorted names of the given capabilities that a built object lacks."""
    return sorted(name for name in names if not isinstance(thing, CAPABILITIES[name]))
