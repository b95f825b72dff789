"""Capabilities: queries that a built model supports, listed in a method's ``requires``.

``offers`` and ``requires.capabilities`` hold the protocols here.
``components.contracts.plugins.protocols`` inspects classes and objects for them; all other code uses
``isinstance`` with a protocol."""

from __future__ import annotations

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
from components.contracts.capabilities.mean_field import (
    Clustered,
    CoordinateAscent,
    PointMasses,
    StructuredAscent,
)
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
    GaussianNoise,
    LinearGaussian,
    OptimalProposal,
    Parameterised,
    PowerIntegral,
    SeriesConditionals,
    SplitNormal,
    StateSpace,
    TerrainAided,
    TransitionDensity,
    TransitionMean,
)
from components.contracts.capabilities.structural import ForecastsSeries, StructuralSeries
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

# Descriptions of systems that generate data, and of environments: of ``simulates``.
SYSTEMS = frozenset(
    {
        AutoregressiveVolatility,
        CategoricalSeries,
        LinearGaussian,
        NumberedStates,
        SplitNormal,
        TerrainAided,
    }
)
# Capabilities of built models, and of attackers: all other classes here.
CAPABILITIES = frozenset(
    {LinearGaussian}.union(
        value
        for value in tuple(globals().values())
        if isinstance(value, type) and value not in SYSTEMS
    )
)
