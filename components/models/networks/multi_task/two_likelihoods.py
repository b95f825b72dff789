"""Common keys of the multi-task networks in Boustati's tables, with shared ReLU layers and one head
per task.
"""

from __future__ import annotations

import math

from pydantic import PositiveFloat, PositiveInt

from components.contracts.capabilities import (
    CAPABILITIES,
    AffineLayers,
    Collapsible,
    Dropout,
    Network,
    Penalised,
    WeightSpace,
)
from components.contracts.plugins.protocols import protocols_of
from components.contracts.requirements import SUPERVISED
from components.contracts.roles import LearnableScale, Model
from components.contracts.streams import Rng
from components.models.networks.dense_network import DenseNetwork
from components.models.networks.feed_forward import DropoutModel, DropoutRate
from components.problems.supervised import Supervised


class DropoutNetworkSettings(DropoutModel):
    """Keys of a network with dropout and an L2 penalty λ Σ θ² on its mean loss, i.e. θ ~ N(0,
    1/(2λN))."""

    requires = SUPERVISED
    offers = {Network, Penalised, WeightSpace, AffineLayers}

    widths: list[PositiveInt]
    dropout: DropoutRate  # probability of dropping a hidden unit, in [0, 1) (A.1: 0.2)
    # λ > 0 of λ Σ θ², added to the mean of -log p(y|x, θ) over rows (A.1: "L2 regularisation",
    # value not given)
    l2: PositiveFloat
    # real labels, noise variance of each task: learned | a number > 0, in units of the standardised
    # labels (not given; about 0.005 gives NLPPs similar to the published ones)
    noise: LearnableScale
    noise_init: PositiveFloat  # initial noise variance when learned, > 0

    def build(self, problem: Supervised, rng: Rng) -> DenseNetwork:
        return _network(
            self, problem, rng, self.dropout, math.sqrt(1 / (2 * self.l2 * problem.n)), None
        )


class NormalPrior(Model[Supervised, DenseNetwork]):
    """Keys of a Bayesian network, θ ~ N(0, s²) and log σ_t² ~ N(log noise_init, noise_spread²)."""

    requires = SUPERVISED
    # the noise has no closed form of several tasks, and nothing is dropped
    offers = protocols_of(DenseNetwork, CAPABILITIES) - {Collapsible, Dropout}

    widths: list[PositiveInt]
    # s > 0, standard deviation of the prior N(0, s²) of every weight and bias (A.1: 1)
    prior_std: PositiveFloat
    # real labels, noise variance of each task: learned | a number > 0, in units of the standardised
    # labels (not
    # given)
    noise: LearnableScale
    # initial noise variance when learned, > 0; also the median of its prior
    noise_init: PositiveFloat
    # standard deviation of log σ² under its prior, > 0; null: flat (maximum likelihood)
    noise_spread: PositiveFloat | None

    def build(self, problem: Supervised, rng: Rng) -> DenseNetwork:
        return _network(self, problem, rng, 0.0, self.prior_std, self.noise_spread)


def _network(
    keys: DropoutNetworkSettings | NormalPrior,
    problem: Supervised,
    rng: Rng,
    dropout: float,
    prior_std: float,
    noise_spread: float | None,
) -> DenseNetwork:
    return DenseNetwork(
        problem,
        rng,
        widths=keys.widths,
        activation="relu",
        dropout=dropout,
        prior_std=prior_std,
        noise=keys.noise,
        noise_init=keys.noise_init,
        noise_spread=noise_spread,
    )
