"""A plain feed-forward network of any widths."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import PositiveFloat, PositiveInt

from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.models.networks.feed_forward import Activation, DropoutRate, FeedForward
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "mlp")
class MLP(Model[Supervised, FeedForward]):
    """Multi-layer perceptron of any widths and activation, with a Gaussian prior on its weights.

    f(x) = W_L a(… a(W_1 x + b_1) …) + b_L: one head of C outputs per task; θ ~ N(0, s²) independently; y_t ~ N(f_t, σ_t²)
    or softmax(f_t).  Also a log-density over flat parameters [K, P], for samplers and particles.

    Source: Gallego (2021), eq. (3.13)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    offers: ClassVar[frozenset[str]] = frozenset(
        {"network", "weight_space", "affine_layers", "log_joint", "theta_predictive", "training_start", "own_inputs"}
    )
    offers_where: ClassVar[dict[str, str]] = {"dropout": "dropout above 0"}

    widths: list[PositiveInt]
    activation: Activation
    dropout: DropoutRate
    prior_std: PositiveFloat
    noise: Literal["learned"] | PositiveFloat
    noise_init: PositiveFloat
    noise_spread: PositiveFloat | None

    def offered(self) -> frozenset[str]:
        return self.offers | (self.offers_where.keys() if self.dropout else set())

    def build(self, problem: Supervised, rng: Rng) -> FeedForward:
        return FeedForward(
            problem,
            rng,
            widths=self.widths,
            activation=self.activation,
            dropout=self.dropout,
            prior_std=self.prior_std,
            noise=self.noise,
            noise_init=self.noise_init,
            noise_spread=self.noise_spread,
        )
