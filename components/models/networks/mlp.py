"""A plain feed-forward network of any widths."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from components.contracts.capabilities import (
    AffineLayers,
    ClosedFormScore,
    Collapsible,
    Dropout,
    LogJoint,
    Penalised,
    ThetaPredictive,
    TrainingStart,
)
from components.contracts.requirements import SUPERVISED
from components.contracts.roles import LearnableScale, Model
from components.contracts.streams import Rng
from components.models.networks.activations import Activation
from components.models.networks.dense_network import DenseNetwork
from components.models.networks.empirical_bayes import EmpiricalBayesNetwork
from components.models.networks.feed_forward import DropoutRate
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "mlp")
class MLP(Model[Supervised, DenseNetwork | EmpiricalBayesNetwork]):
    """Multi-layer perceptron of any widths and activation, with a Gaussian prior on its weights.

    f(x) = W_L a(… a(W_1 x + b_1) …) + b_L: one head of C outputs per task; θ ~ N(0, s²)
    independently; y_t ~ N(f_t, σ_t²) or softmax(f_t).  It is also a log-density over flat
    parameters [K, P], for samplers and particles.

    s may be learned, and biases may be point estimates without a prior: both are parameters of the
    objective of q(θ) and not part of θ, and the density over flat parameters is then not available.

    Source: Gallego (2021), eq. (3.13); Rodríguez Santana and Hernández-Lobato (2020), end of
    section 4.3 (learned s)."""

    requires = SUPERVISED
    offers_where = {
        Dropout: "dropout=0.1",
        Penalised: "prior_std=1.0",
        AffineLayers: "biases=random",
        LogJoint: "prior_std=1.0 model.biases=random",
        ThetaPredictive: "prior_std=1.0 model.biases=random",
        TrainingStart: "prior_std=1.0 model.biases=random",
        Collapsible: "prior_std=1.0 model.biases=random",
        ClosedFormScore: "prior_std=1.0 model.biases=random",
    }

    widths: list[PositiveInt]
    activation: Activation
    dropout: DropoutRate
    prior_std: LearnableScale
    prior_init: PositiveFloat
    biases: Literal["random", "point"]
    noise: LearnableScale
    noise_init: PositiveFloat
    noise_spread: PositiveFloat | None

    def is_enabled(self, capability: type) -> bool:
        fixed = self.prior_std != "learned"
        random = self.biases == "random"
        by_capability: dict[type, bool] = {
            Dropout: self.dropout > 0,
            Penalised: fixed,
            AffineLayers: random,
        }
        return by_capability.get(capability, fixed and random)

    def build(self, problem: Supervised, rng: Rng) -> DenseNetwork | EmpiricalBayesNetwork:
        s = self.prior_init if self.prior_std == "learned" else self.prior_std
        network = DenseNetwork(
            problem,
            rng,
            widths=self.widths,
            activation=self.activation,
            dropout=self.dropout,
            prior_std=s,
            noise=self.noise,
            noise_init=self.noise_init,
            noise_spread=self.noise_spread,
        )
        learned = self.prior_std == "learned"
        point = self.biases == "point"
        if not learned and not point:
            return network
        return EmpiricalBayesNetwork(
            network, point_biases=point, learned_prior=learned, prior_std=s
        )
