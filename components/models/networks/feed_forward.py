"""The multi-head feed-forward network behind every neural model here.

Its weights are one flat vector θ [P], so that a single network, a mean-field posterior over networks and K particles
share one forward pass: ``propagate``, in which only the affine map differs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from components.contracts.predictive import Categorical, GaussianMixture, Predictive
from components.contracts.problems import Batch
from components.contracts.streams import Rng
from components.models.networks.classifier import class_log_prob
from components.models.networks.convolutions import Convolutions, Downsampling
from components.problems.supervised import Supervised

Activation = Literal["relu", "leaky_relu", "tanh", "gelu", "softplus", "identity"]
DropoutRate = Annotated[float, Field(ge=0, lt=1)]
Affine = Callable[[int, Tensor], Tensor]
LEAK = 0.2  # slope of leaky ReLUs below 0, as TensorFlow has it
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "leaky_relu": partial(F.leaky_relu, negative_slope=LEAK),
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "softplus": F.softplus,
    "identity": lambda h: h,
}


class FeedForward(nn.Module):
    """f(x) = W_L a(… a(W_1 x + b_1) …) + b_L with one linear head of C outputs for each of T tasks on shared layers.

    Real labels: y_t ~ N(f_t(x), σ_t²); otherwise p(y_t = c) = softmax(f_t(x))_c.  Weights and biases have independent
    priors N(0, s²); a learned log σ_t² has the prior N(log noise_init, noise_spread²), or a flat one (None).
    As particles, θ [K, P] is the weights followed by the log σ_t² when they are learned.  ``channels`` puts convolutions
    in front, whose features, with dropout like that of hidden units, take the place of x; their weights come first in θ.

    Source: Bakker and Heskes (2003); Glorot and Bengio (2010), eq. (16) for the initial weights."""

    prior_std: Tensor
    log_noise: Tensor
    own_inputs = True  # K particles may each be given inputs of their own, x [K, B, D]

    def __init__(
        self,
        problem: Supervised,
        rng: Rng,
        *,
        widths: list[int],
        activation: Activation,
        dropout: float,
        prior_std: float,
        noise: float | Literal["learned"],
        noise_init: float,
        noise_spread: float | None,
        channels: list[int] | None = None,
        kernel: int = 3,
        downsampling: Downsampling = "pool",
    ):
        super().__init__()
        x = problem.train.x
        self.target, self.n_tasks, self.n_outputs = problem.target, problem.n_tasks, problem.n_classes
        self.activation, self.dropout = ACTIVATIONS[activation], dropout
        self.front = Convolutions(problem, channels, kernel, downsampling, self.activation) if channels else None
        sizes = [self.front.features if self.front else problem.n_inputs, *widths, self.n_tasks * self.n_outputs]
        convolutions = self.front.shapes if self.front else []
        self.first = len(convolutions)  # number of convolutions: index of the first affine layer
        self.shapes = convolutions + list(zip(sizes[1:], sizes[:-1], strict=True))  # (out, in) of each layer
        self.pieces = [n for out, inside in self.shapes for n in (out * inside, out)]
        self.theta = nn.Parameter(self._glorot(1, rng.init)[0].to(x))
        self.register_buffer("prior_std", torch.full_like(self.theta.detach(), prior_std))
        self.log_normaliser = len(self.theta) * math.log(prior_std * math.sqrt(2 * math.pi))  # of the weights' prior
        self.learns_noise = problem.target == "real" and noise == "learned"
        start = noise_init if noise == "learned" else noise
        log_noise = x.new_full((self.n_tasks,), math.log(start))  # log σ_t² [T]
        if self.learns_noise:
            self.log_noise = nn.Parameter(log_noise)
        else:
            self.register_buffer("log_noise", log_noise)
        self.noise_median, self.noise_spread = math.log(start), noise_spread

    @property
    def shares_weights(self) -> bool:
        """Whether there are convolutions, whose pixels share their weights."""
        return self.front is not None

    def initial(self, n: int, generator: torch.Generator) -> Tensor:
        """θ of n networks where training begins, [n, P']: Glorot's weights, and the log σ_t² that are learned."""
        log_noise = torch.full((n, self.dim - len(self.prior_std)), self.noise_median, dtype=torch.float64)
        return torch.cat([self._glorot(n, generator), log_noise.to(generator.device)], 1)

    def _glorot(self, n: int, generator: torch.Generator) -> Tensor:
        """Weights of n networks [n, P], uniform with Glorot's limits; biases 0."""
        parts = []
        for layer, (out, inside) in enumerate(self.shapes):
            # Every task's head is a layer of its own, with its own fan-out.
            fan_out = out if layer < len(self.shapes) - 1 else self.n_outputs
            if self.front is not None and layer < self.first:
                fan_out = out * self.front.window  # windows that a pixel is in, each with so many channels
            limit = math.sqrt(6 / (inside + fan_out))
            u = torch.rand(n, out * inside, generator=generator, dtype=torch.float64, device=generator.device)
            parts += [limit * (2 * u - 1), u.new_zeros(n, out)]
        return torch.cat(parts, 1)

    # ---- the forward pass ------------------------------------------------------------------------------------------
    def layers(self, theta: Tensor) -> list[tuple[Tensor, Tensor]]:
        """θ [..., P] as (W [..., out, in], b [..., out]) of each layer."""
        parts = theta.split(self.pieces, -1)
        weights = [w.unflatten(-1, shape) for w, shape in zip(parts[::2], self.shapes, strict=True)]
        return list(zip(weights, parts[1::2], strict=True))

    def propagate(
        self, x: Tensor, affine: Affine, generator: torch.Generator | None = None, passes: int | None = None
    ) -> Tensor:
        """f [..., B, T, C] with ``affine(l, h)`` in place of h W_lᵀ + b_l; dropout acts where a generator is given.

        x is what the first affine layer sees: the inputs, or the features of convolutions, which dropout acts on too."""
        h, last = x, len(self.shapes) - 1
        if self.front is not None:
            h = self._dropped(h, generator, passes)
        for layer in range(self.first, last):
            h = self._dropped(self.activation(affine(layer, h)), generator, passes)
        return affine(last, h).unflatten(-1, (self.n_tasks, self.n_outputs))

    def _dropped(self, h: Tensor, generator: torch.Generator | None, passes: int | None) -> Tensor:
        if generator is None or self.dropout == 0:
            return h
        # All passes share what comes before the first dropout, so they part only here.
        shape = h.shape if passes is None or h.ndim == 3 else (passes, *h.shape)
        kept = torch.rand(shape, generator=generator, dtype=h.dtype, device=h.device) >= self.dropout
        return h * kept * (1 / (1 - self.dropout))

    def forward(self, x: Tensor, generator: torch.Generator | None = None, passes: int | None = None) -> Tensor:
        """f [B, T, C] of the module's own weights; with ``passes`` = S, S dropout passes at once [S, B, T, C]."""
        return self.at(self.theta, x, generator, passes)

    def at(self, theta: Tensor, x: Tensor, generator: torch.Generator | None, passes: int | None) -> Tensor:
        """The same with other weights θ [P]."""
        layers = self.layers(theta)
        h = x if self.front is None else self.front(x, layers[: self.first])
        f = self.propagate(h, lambda layer, h: F.linear(h, *layers[layer]), generator, passes)
        return f if passes is None or f.ndim == 4 else f.expand(passes, *f.shape)

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor:
        """f [K, B, T, C] of K weight vectors θ [K, P'], P' ≥ the number of weights, by batched products."""
        layers = self.layers(self._weights(theta))

        def affine(layer: int, h: Tensor) -> Tensor:
            weight, bias = layers[layer]
            if weight.shape[-2] == 1:  # one output: products with single columns and rows are slow as batched matrices
                return (h * weight).sum(-1, keepdim=True) + bias[:, None]
            return torch.baddbmm(bias[:, None], h.expand(len(theta), *h.shape[-2:]), weight.mT)

        return self.propagate(x if self.front is None else self.front(x, layers[: self.first]), affine)

    # ---- likelihood and prior --------------------------------------------------------------------------------------
    def log_prob(self, f: Tensor, batch: Batch, log_noise: Tensor | None = None) -> Tensor:
        """Σ_t log p(y_t|f_t) over the observed labels: f [..., B, T, C] -> [..., B]."""
        if self.target == "real":
            log_noise = self.log_noise if log_noise is None else log_noise
            residual = torch.where(batch.mask, batch.y, 0.0) - f[..., 0]  # [..., B, T]
            constant = -0.5 * (math.log(2 * math.pi) + log_noise)
            log_density = constant - (0.5 * (-log_noise).exp()) * (residual * residual)
        else:
            log_density = class_log_prob(f, batch.y)
        return (log_density * batch.mask).sum(-1)

    def noise_log_prior(self, log_noise: Tensor) -> Tensor:
        """log N(log σ² | log noise_init, noise_spread²) summed over tasks; 0 where it is flat or the noise fixed."""
        if self.noise_spread is None or not self.learns_noise:
            return log_noise.new_zeros(log_noise.shape[:-1])
        z = (log_noise - self.noise_median) / self.noise_spread
        return -0.5 * (z**2 + math.log(2 * math.pi * self.noise_spread**2)).sum(-1)

    def hyperprior(self) -> Tensor:
        """log p(log σ²) of the module's own noise."""
        return self.noise_log_prior(self.log_noise)

    def penalty(self) -> Tensor:
        """½ Σ θ²/s² − log p(log σ²): minus the log prior of the module's own parameters, up to a constant."""
        return 0.5 * ((self.theta / self.prior_std) ** 2).sum() - self.hyperprior()

    def output_predictive(self, f: Tensor, log_noise: Tensor | None = None) -> Predictive:
        """Mixture over the samples of f [S, B, T, C]."""
        if self.target != "real":
            return Categorical(f)
        mu = f[..., 0]
        return GaussianMixture(mu, (self.log_noise if log_noise is None else log_noise).exp().expand_as(mu))

    # ---- as a log-density over flat parameters ---------------------------------------------------------------------
    @property
    def dim(self) -> int:
        """P: the weights and, when learned, one log σ² per task."""
        return len(self.prior_std) + (self.n_tasks if self.learns_noise else 0)

    @property
    def names(self) -> list[str]:
        return []  # a weight has no name that anybody would look for

    def constrain(self, theta: Tensor) -> Tensor:
        return theta

    def _weights(self, theta: Tensor) -> Tensor:
        n = len(self.prior_std)
        return theta if theta.shape[1] == n else theta[:, :n]  # a slice of everything would cost its gradient a copy

    def _noise_of(self, theta: Tensor) -> Tensor:
        own = theta[:, len(self.prior_std) :]
        return (own if self.learns_noise else self.log_noise.expand(len(theta), -1))[:, None]  # [K, 1, T]

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        """θ [n, P] from the prior (log σ² at its initial value where its prior is flat)."""
        scale = self.prior_std
        if self.learns_noise:
            scale = torch.cat([scale, scale.new_full((self.n_tasks,), self.noise_spread or 0.0)])
        noise = torch.randn(n, self.dim, generator=generator, dtype=scale.dtype, device=generator.device)
        theta = scale * noise.to(scale.device)
        theta[:, len(self.prior_std) :] += self.noise_median
        return theta

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        """log p(y_b|x_b, θ_k) of every row, unscaled: [K, P] -> [K, B]."""
        return self.log_prob(self.outputs(theta, batch.x), batch, self._noise_of(theta))

    def log_prior(self, theta: Tensor) -> Tensor:
        """log p(θ_k), normalised: [K, P] -> [K]."""
        z = self._weights(theta) / self.prior_std
        weights = -0.5 * (z * z).sum(-1) - self.log_normaliser
        return weights + self.noise_log_prior(self._noise_of(theta)[:, 0])

    def predictive(self, theta: Tensor, x: Tensor) -> Predictive:
        """Predictive of K particles θ [K, P] at x [B, D], or each at inputs of its own [K, B, D]."""
        return self.output_predictive(self.outputs(theta, x), self._noise_of(theta))
