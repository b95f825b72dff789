"""Mean-field variational inference for the weights of a network (Bayes by backprop)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.capabilities import AffineLayers, WeightSpace
from components.contracts.posteriors import Predicts
from components.contracts.predictive import Predictive
from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.inference.implicit.generator import Generator
from components.inference.point.descent import frozen
from components.inference.variational.ascent import ascend_term, warmup_weight
from components.maths.compiled.affine import affine
from components.maths.exponential.standard_draws import standard_normal
from components.maths.optimizers import Adam
from components.posteriors.draws import hold
from components.problems.supervised import Supervised
from components.registry import register


class MeanField(nn.Module):
    """q(θ) = Π_p N(θ_p | μ_p, σ_p²); μ is the network's own θ, so its Glorot initialisation is
    where q starts."""

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
        """f [n, B, T, C] by local reparameterisation: a pre-activation is drawn where its weights
        would be.

        a = h W_μᵀ + b_μ + √(h² W_σ²ᵀ + b_σ²) ∘ ε, ε [n, B, out]: every row has its own weights,
        which makes the rows' contributions to the gradient independent (Kingma, Salimans and
        Welling 2015, eq. 6)."""
        network = self.network
        assert isinstance(network, AffineLayers)
        means = network.layers(network.theta)
        variances = network.layers((2 * self.log_std).exp())

        def sampled(layer: int, h: Tensor) -> Tensor:
            centre = affine(h, *means[layer])
            variance = affine(h**2, *variances[layer])
            shape = (n, *centre.shape[-2:])
            noise = standard_normal(shape, generator, h)
            return torch.addcmul(centre, variance.sqrt(), noise)

        return network.propagate(x, sampled)


@dataclass(frozen=True)
class MeanFieldState:
    """q(θ), its optimizer, and the number of steps done."""

    q: MeanField
    optimizer: Adam
    t: int = 0


@dataclass(frozen=True)
class MeanFieldPosterior:
    """q(θ), from which every prediction draws anew."""

    q: MeanField | Generator
    n_predict: int

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Mixture over S whole networks drawn from q, at x [B, D]; differentiable in x."""
        network = self.q.network
        return network.output_predictive(network.outputs(self.q.draw(self.n_predict, generator), x))

    def some(self, n: int, generator: torch.Generator | None) -> Predicts:
        """n networks behind each prediction: new ones, or always the same without a generator."""
        return hold(replace(self, n_predict=n), generator)


@register("inference", "mean_field_vi")
class MeanFieldVI(Inference[WeightSpace, Supervised, Batch, MeanFieldState]):
    """Mean-field VI of network weights: independent Gaussians, by stochastic gradients (Adam).

    L = N/B Σ_b S⁻¹ Σ_s log p(y_b|x_b, θ_s) − κ KL(q ‖ p) + log p(σ²), θ_s ~ q
    reparameterised; the observation noise σ² is a point estimate.  κ = ``kl_scale`` = 1
    makes L a lower bound on log p(y).  In the first ``warmup`` steps the KL term of the
    optimised objective has the weight β κ, with β rising from 0 to 1; ``elbo`` has κ
    throughout.

    Raises:
        ConfigMismatchError: noise on pre-activations (``estimator`` local) is requested for
            convolutions, in which pixels share weights.

    Source: Blundell et al. (2015), section 3; Kingma, Salimans and Welling (2015), eq. (6);
    Rodríguez Santana and Hernández-Lobato (2020), section 6.2, for the warm-up.
    """

    requires = Requirements(kinds={"supervised"}, capabilities={"network", "weight_space"})
    provides = {"predicts", "redraws"}

    lr: PositiveFloat
    estimator: Literal["local", "weights"]
    n_samples: PositiveInt
    n_predict: PositiveInt
    kl_scale: PositiveFloat
    initial_std: PositiveFloat
    warmup: NonNegativeInt

    def asked_by_keys(self) -> dict[str, str]:
        return {"affine_layers": "estimator"} if self.estimator == "local" else {}

    def init(self, model: WeightSpace, problem: Supervised, rng: Rng) -> MeanFieldState:
        if self.estimator == "local" and model.shares_weights:
            raise ConfigMismatchError(
                "inference.estimator: noise on the pre-activations (local) would give every pixel weights of its own, which "
                "a convolution's share; use weights"
            )
        q = MeanField(model, self.initial_std)
        return MeanFieldState(q, Adam(q.parameters(), self.lr))

    def elbo(self, q: MeanField, batch: Batch, generator: torch.Generator) -> dict[str, Tensor]:
        """Unbiased estimates of the bound and of its two terms, each []."""
        if self.estimator == "local":
            f = q.local(batch.x, self.n_samples, generator)
        else:
            f = q.network.outputs(q.draw(self.n_samples, generator), batch.x)
        log_likelihood = (batch.scale / self.n_samples) * q.network.log_prob(f, batch).sum()
        kl = q.kl()
        elbo = log_likelihood - self.kl_scale * kl + q.network.hyperprior()
        return {"elbo": elbo, "log_likelihood": log_likelihood, "kl": kl}

    def step(self, state: MeanFieldState, batch: Batch, rng: Rng) -> tuple[MeanFieldState, Info]:
        terms = self.elbo(state.q, batch, rng.noise)
        if (beta := warmup_weight(state.t, self.warmup)) < 1:
            waived = (1 - beta) * self.kl_scale * terms["kl"]
            info = ascend_term(
                state.optimizer, terms | {"objective": terms["elbo"] + waived}, "objective", batch
            )
        else:
            info = ascend_term(state.optimizer, terms, "elbo", batch)
        return replace(state, t=state.t + 1), info

    def posterior(self, state: MeanFieldState) -> MeanFieldPosterior:
        return MeanFieldPosterior(frozen(state.q), self.n_predict)
