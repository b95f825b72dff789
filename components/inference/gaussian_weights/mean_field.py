"""Factorised Gaussian over the weights of a network, and shared code of methods that fit one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities import AffineLayers, WeightSpace
from components.contracts.predictive import Predictive
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.inference.implicit.generator import Generator
from components.inference.point.descent import frozen
from components.inference.variational.ascent import ascend_term
from components.maths.compiled.affine import affine
from components.maths.exponential.standard_draws import standard_normal
from components.maths.optimizers import Adam
from components.posteriors.redraws import DrawsByNumber
from components.problems.supervised import Supervised


class MeanField(nn.Module):
    """q(θ) = Π_p N(θ_p | μ_p, σ_p²); μ is the network's own θ, so q starts at its Glorot
    initialisation."""

    network: WeightSpace

    def __init__(self, network: WeightSpace, initial_std: float):
        super().__init__()
        self.network = network
        self.log_std = nn.Parameter(torch.full_like(network.theta.detach(), math.log(initial_std)))

    def kl(self) -> Tensor:
        """KL(q ‖ p) = Σ_p ½(σ² + μ²)/s² − ½ − log σ/s for the prior N(0, s²)."""
        prior_std: Tensor = self.network.prior_std
        log_ratio = self.log_std - prior_std.log()  # log σ/s
        square = (2 * log_ratio).exp() + (self.network.theta / prior_std) ** 2
        return (0.5 * (square - 1) - log_ratio).sum()

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """θ_s = μ + σ ∘ ε_s, [n, P]."""
        mean = self.network.theta
        noise = standard_normal((n, len(mean)), generator, mean)
        return torch.addcmul(mean, self.log_std.exp(), noise)

    def local(self, x: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """f [n, B, T, C] by local reparameterisation: pre-activations are drawn instead of weights.

        a = h W_μᵀ + b_μ + √(h² W_σ²ᵀ + b_σ²) ∘ ε, ε [n, B, out]: every row has its own weights,
        which makes the rows' contributions to the gradient independent (Kingma, Salimans and
        Welling 2015, eq. 6)."""
        network = self.network
        assert isinstance(network, AffineLayers)
        means = network.layers(network.theta)
        variances = network.layers((2 * self.log_std).exp())

        def draw_layer(layer: int, h: Tensor) -> Tensor:
            centre = affine(h, *means[layer])
            variance = affine(h**2, *variances[layer])
            shape = (n, *centre.shape[-2:])
            noise = standard_normal(shape, generator, h)
            return torch.addcmul(centre, variance.sqrt(), noise)

        return network.propagate(x, draw_layer)

    def exponents(self, theta: Tensor) -> Tensor:
        """½ Σ_p (ε_p² − θ_p²/s_p²), ε = (θ − μ)/σ: θ [K, P] -> [K].

        log p(θ) − log q(θ) is ``log_scales`` + ``exponents``, of p = N(0, diag s²)."""
        noise = (theta - self.network.theta) / self.log_std.exp()
        return 0.5 * (noise.square() - (theta / self.network.prior_std).square()).sum(1)

    @property
    def log_scales(self) -> Tensor:
        """Σ_p log σ_p/s_p []."""
        return (self.log_std - self.network.prior_std.log()).sum()


@dataclass(frozen=True)
class MeanFieldState:
    """q(θ), its optimizer, and the number of steps done."""

    q: MeanField
    optimizer: Adam
    train: Batch = not_checkpointed()
    t: int = 0


@dataclass(frozen=True)
class MeanFieldPosterior(DrawsByNumber):
    """q(θ), with fresh draws for every prediction."""

    q: MeanField | Generator

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Mixture over S whole networks drawn from q, at x [B, D]; differentiable in x."""
        network = self.q.network
        return network.output_predictive(network.outputs(self.q.draw(self.n_predict, generator), x))


class MeanFieldMethod(Inference[WeightSpace, Supervised, Batch, MeanFieldState]):
    """Keys and steps (Adam); subclasses define ``terms``."""

    requires = Requirements(kinds={"supervised"}, capabilities={WeightSpace})

    lr: PositiveFloat
    n_samples: PositiveInt
    n_predict: PositiveInt
    initial_std: PositiveFloat

    def init(self, model: WeightSpace, problem: Supervised, rng: Rng) -> MeanFieldState:
        q = MeanField(model, self.initial_std)
        return MeanFieldState(q, Adam(q.parameters(), self.lr), problem.train)

    def terms(
        self, q: MeanField, t: int, batch: Batch, generator: torch.Generator
    ) -> dict[str, Tensor]:
        """Estimates for all rows after t steps, each []; ``objective``, or else ``elbo``, is
        maximised."""
        raise NotImplementedError

    def step(self, state: MeanFieldState, batch: Batch, rng: Rng) -> tuple[MeanFieldState, Info]:
        terms = self.terms(state.q, state.t, batch, rng.noise)
        name = "objective" if "objective" in terms else "elbo"
        return replace(state, t=state.t + 1), ascend_term(state.optimizer, terms, name, batch)

    def posterior(self, state: MeanFieldState) -> MeanFieldPosterior:
        return MeanFieldPosterior(q=frozen(state.q), n_predict=self.n_predict)
