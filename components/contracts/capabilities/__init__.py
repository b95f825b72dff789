"""Capabilities: queries that a built model supports, listed in a method's ``requires``.

A name in ``offers``, ``requires.capabilities`` or ``provides`` is the snake-case name of a protocol
here. ``check_offered`` is the only place that inspects an object for its capabilities; everywhere
else an ``isinstance`` of a protocol decides."""

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

CAPABILITIES: dict[str, type] = {
    "log_joint": LogJoint,
    "theta_predictive": ThetaPredictive,
    "gaussian_prior": GaussianPrior,
    "warm_start": WarmStart,
    "training_start": TrainingStart,
    "closed_form_score": ClosedFormScore,
    "collapsible": Collapsible,
    "own_inputs": OwnInputs,
    "conditionals": Conditionals,
    "conjugate": Conjugate,
    "beta_posterior": BetaPosterior,
    "linear_smoother": LinearSmoother,
    "dirichlet_process": DirichletProcess,
    "coordinate_ascent": CoordinateAscent,
    "structured_ascent": CoordinateAscent,
    "point_masses": PointMasses,
    "clustered": Clustered,
    "elbo": Elbo,
    "variational_layers": VariationalLayers,
    "given_function": GivenFunction,
    "noise_parameters": NoiseParameters,
    "hyperparameters": Hyperparameters,
    "ard_weights": ArdWeights,
    "inducing_inputs": InducingInputs,
    "pathwise": Pathwise,
    "normal_noise": NormalNoise,
    "location_scale": LocationScale,
    "global_latent": GlobalLatent,
    "row_context": RowContext,
    "path_derivative": PathDerivative,
    "log_ratio": LogRatio,
    "factored_guide": FactoredGuide,
    "draws_with_density": DrawsWithDensity,
    "draws_with_derivative": DrawsWithDensity,
    "row_guide": RowGuide,
    "latent_variable": LatentVariable,
    "class_conditional": ClassConditional,
    "bernoulli_layers": BernoulliLayers,
    "decoder": Decoder,
    "topic_model": TopicModel,
    "network": Network,
    "penalised": Penalised,
    "dropout": Dropout,
    "batch_normalised": BatchNormalised,
    "weight_space": WeightSpace,
    "affine_layers": AffineLayers,
    "estimator": Estimator,
    "generative": Generative,
    "state_space": StateSpace,
    "transition_density": TransitionDensity,
    "transition_mean": TransitionMean,
    "optimal_proposal": OptimalProposal,
    "bounded_observation": BoundedObservation,
    "gaussian_noise": GaussianNoise,
    "additive_gaussian": AdditiveGaussian,
    "parameterised": Parameterised,
    "forecasts_series": ForecastsSeries,
    "categorical_series": CategoricalSeries,
    "known_parameters": KnownParameters,
    "known_response": KnownResponse,
    "power_integral": PowerIntegral,
    "linear_gaussian": LinearGaussian,
    "split_normal": SplitNormal,
    "terrain_aided": TerrainAided,
    "autoregressive_volatility": AutoregressiveVolatility,
    "series_conditionals": SeriesConditionals,
    "structural_series": StructuralSeries,
    "numbered_states": NumberedStates,
    "q_function": QFunction,
    "noise_law": NoiseLaw,
    "noise_density": NoiseDensity,
}


def missing(thing: object, names: Set[str]) -> list[str]:
    """Capabilities of those named that a built thing does not have, sorted."""
    return sorted(name for name in names if not isinstance(thing, CAPABILITIES[name]))
