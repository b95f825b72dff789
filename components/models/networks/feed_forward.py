"""The multi-head feed-forward network, the base of all neural models.

Its weights are one flat vector θ [P], so a single network, a mean-field posterior over networks and
K particles share the forward pass ``propagate`` and differ only in the affine map."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from components.contracts.capabilities import Dropout
from components.contracts.capabilities.margins import BoundsMargins, MarginBounds
from components.contracts.capabilities.networks import Affine, Layers
from components.contracts.predictive import ReversedOutputs, ReversedPredictive
from components.contracts.roles import LearnableScale, Model, ZeroToBelowOne
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.compiled.affine import affine
from components.maths.exponential.standard_draws import standard_uniform
from components.maths.intervals import Perturbations
from components.models.networks.activations import (
    ACTIVATION_FUNCTIONS,
    ACTIVATIONS,
    Activation,
    ActivationFunction,
)
from components.models.networks.convolutions import Convolutions, ConvolutionSettings
from components.models.networks.flat_network import FlatNetwork
from components.models.networks.last_layer_out import LastLayerMarginal
from components.models.networks.output_bounds import network_margins
from components.problems.supervised import Supervised


def forward(
    x: Tensor, affine: Affine, layers: int, bend: ActivationFunction
) -> tuple[Tensor, list[Tensor]]:
    """f = z_L [..., B, out] of z_l = h_{l−1} W_lᵀ + b_l, h_0 = x [..., B, in], and the stored value
    of each activation for the backward pass."""
    z = affine(0, x)
    activations = []
    for layer in range(1, layers):
        h = bend.value(z)
        activations.append(z if bend.keeps else h)
        z = affine(layer, h)
    return z, activations


def back(
    g: Tensor,
    weights: Sequence[Tensor],
    kept: Sequence[Tensor],
    bend: ActivationFunction,
    shared: bool,
) -> Tensor:
    """∂/∂x = W_1ᵀ D_1 W_2ᵀ … D_{L−1} W_Lᵀ ∂/∂f, from the right, for g = ∂/∂f [..., B, out] and W_l
    [..., out, in].

    D_l = diag a'(z_l).  For K networks with the same rows [B, in] (``shared``) it is the sum."""
    by = torch.matmul if weights[0].ndim == 3 else lambda g, weight: affine(g, weight.T)
    for weight, activation in zip(reversed(weights[1:]), reversed(kept), strict=True):
        g = by(g, weight)
        g = bend.derivative(g, activation, g)
    if shared:
        # [B, K · out] [K · out, in]: one product for all networks
        return affine(g.transpose(0, 1).flatten(1), weights[0].flatten(0, 1).T)
    return by(g, weights[0])


DropoutRate = ZeroToBelowOne


class DropoutModel(Model[Supervised, nn.Module]):
    """Network with dropout if its key ``dropout`` is above 0."""

    offers_where = {Dropout: "dropout=0.1"}
    dropout: DropoutRate

    def is_enabled(self, capability: type) -> bool:
        return self.dropout > 0


class FeedForward(FlatNetwork, BoundsMargins):
    """f(x) = W_L a(… a(W_1 x + b_1) …) + b_L with one linear head of C outputs per task.

    The T heads share all layers below them. Likelihood and priors are those of ``FlatNetwork``; θ
    [P] holds weights and biases, layer by layer. Optional ``convolutions`` come first: their
    features, with the same dropout as hidden units, replace x, and their weights come first in θ.

    Source: Bakker and Heskes (2003); Glorot and Bengio (2010), eq. (16) for the initial
    weights.
    """

    def __init__(
        self,
        problem: Supervised,
        rng: Rng,
        *,
        widths: list[int],
        activation: Activation,
        dropout: float,
        prior_std: float,
        noise: LearnableScale,
        noise_init: float,
        noise_spread: float | None,
        convolutions: ConvolutionSettings | None = None,
    ):
        front = convolutions and Convolutions(problem, *convolutions, activation)
        sizes = [
            front.features if front else problem.n_inputs,
            *widths,
            problem.n_tasks * problem.n_classes,
        ]
        first = len(front.shapes) if front else 0
        # (out, in) of each layer
        shapes = (front.shapes if front else []) + list(zip(sizes[1:], sizes[:-1], strict=True))
        window = front.window if front else 1
        theta = _glorot(1, rng.init, shapes, first, window, problem.n_classes)[0]
        super().__init__(problem, theta, dropout, prior_std, noise, noise_init, noise_spread)
        self.activation_name = activation
        self.activation = ACTIVATIONS[activation]
        self.bend = ACTIVATION_FUNCTIONS[activation]
        self.front = front
        self.shapes = shapes
        self.first = first  # number of convolutions: index of the first affine layer
        self.pieces = [n for out, inside in shapes for n in (out * inside, out)]

    @property
    def shares_weights(self) -> bool:
        """True if there are convolutions, which share weights between pixels."""
        return self.front is not None

    def initial(self, n: int, generator: torch.Generator) -> Tensor:
        """Initial θ of n networks, [n, P']: Glorot's weights, and the learned log σ_t²."""
        window = self.front.window if self.front else 1
        theta = _glorot(n, generator, self.shapes, self.first, window, self.n_outputs)
        log_noise = torch.full(
            (n, self.dim - len(self.prior_std)), self.noise_median, dtype=torch.float64
        )
        return torch.cat([theta, log_noise.to(generator.device)], 1)

    # Forward pass
    def layers(self, theta: Tensor, first: int | None = None) -> Layers:
        """θ [..., P] as (W [..., out, in], b [..., out]) of each layer.

        θ may hold only the first ``first`` layers.
        """
        shapes = self.shapes[:first]
        parts = self.all_weights(theta).split(self.pieces[: 2 * len(shapes)], -1)
        weights = [
            w.view(*w.shape[:-1], *shape) for w, shape in zip(parts[::2], shapes, strict=True)
        ]
        return list(zip(weights, parts[1::2], strict=True))

    def propagate(
        self,
        x: Tensor,
        affine: Affine,
        generator: torch.Generator | None = None,
        passes: int | None = None,
    ) -> Tensor:
        """f [..., B, T, C] with ``affine(l, h)`` instead of h W_lᵀ + b_l, and with dropout if a
        generator is given.

        x is the input of the first affine layer: the inputs, or the features of convolutions, to
        which
        dropout also applies."""
        h = self._hidden(x, affine, generator, passes)
        return affine(len(self.shapes) - 1, h).unflatten(-1, (self.n_tasks, self.n_outputs))

    def _hidden(
        self,
        x: Tensor,
        affine: Affine,
        generator: torch.Generator | None = None,
        passes: int | None = None,
    ) -> Tensor:
        """Inputs of the last layer [..., B, units]."""
        h = x
        if self.front is not None:
            h = self._apply_dropout(h, generator, passes)
        for layer in range(self.first, len(self.shapes) - 1):
            h = self._apply_dropout(self.activation(affine(layer, h)), generator, passes)
        return h

    def _apply_dropout(
        self, h: Tensor, generator: torch.Generator | None, passes: int | None
    ) -> Tensor:
        if generator is None or self.dropout == 0:
            return h
        # All passes share the layers before the first dropout, so they are expanded only here.
        shape = h.shape if passes is None or h.ndim == 3 else (passes, *h.shape)
        mask = standard_uniform(shape, generator, h) >= self.dropout
        return h * mask * (1 / (1 - self.dropout))

    def forward(
        self, x: Tensor, generator: torch.Generator | None = None, passes: int | None = None
    ) -> Tensor:
        """f [B, T, C] with the module's weights.

        With ``passes`` = S, f of S dropout passes [S, B, T, C].
        """
        return self.at(self.theta, x, generator, passes)

    def at(
        self, theta: Tensor, x: Tensor, generator: torch.Generator | None, passes: int | None
    ) -> Tensor:
        """``forward`` with other weights θ [P]."""
        layers = self.layers(theta)
        f = self.propagate(self._forward(x, layers), _layer_map(layers), generator, passes)
        return f if passes is None or f.ndim == 4 else f.expand(passes, *f.shape)

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor:
        """f [K, B, T, C] for K weight vectors θ [K, P'], P' ≥ the number of weights, by batched
        products."""
        layers = self.layers(self._weights(theta))
        return self.propagate(self._forward(x, layers), _batch_layers(layers))

    def features(self, theta: Tensor, x: Tensor) -> Tensor:
        """Inputs of the last layers of K networks [K, B, units].

        θ [K, P''] are the weights below the last layers.
        """
        layers = self.layers(theta, len(self.shapes) - 1)
        return self._hidden(self._forward(x, layers), _batch_layers(layers))

    def _forward(self, x: Tensor, layers: Layers) -> Tensor:
        return x if self.front is None else self.front(x, layers[: self.first])

    # Backward pass to the inputs
    def reverse(self, x: Tensor) -> ReversedOutputs:
        """f [B, T, C] with the module's weights, and a function from ∂/∂f to ∂/∂x [B, D]; None for
        convolutions with pooling or on a device."""
        return self.reverse_with_weights(self.theta, x)

    def reverse_with_weights(self, theta: Tensor, x: Tensor) -> ReversedOutputs:
        """``reverse`` with other weights θ [P]; for K weight vectors [K, P] f [K, B, T, C], and the
        sum of their derivatives."""
        front = self.front
        if front is not None and (theta.ndim == 2 or not front.is_reversible(x)):
            return None
        with torch.no_grad():
            layers = self.layers(theta)
            shared = front is None and x.ndim < theta.ndim + 1
            if front is not None:
                x, to_image = front.reverse(x, layers[: self.first], self.bend)
                (weight, bias), *above = layers[self.first :]
                layers = [(front.by_pixel(weight), bias), *above]
            through = _batch_layers(layers) if theta.ndim == 2 else _layer_map(layers)
            f, activations = forward(x, through, len(layers), self.bend)
        weights = [weight for weight, _ in layers]

        def to_inputs(g: Tensor) -> Tensor:
            g = back(g.flatten(-2), weights, activations, self.bend, shared)
            return g if front is None else to_image(g)

        return f.unflatten(-1, (self.n_tasks, self.n_outputs)), to_inputs

    def predictive_reversed(self, theta: Tensor, x: Tensor) -> ReversedPredictive:
        """Predictive of K particles θ [K, P] at x [B, D] or [K, B, D], and its reverse map.

        The reverse map takes ∂/∂f [K, B, T, C] to ∂/∂x.
        """
        both = self.reverse_with_weights(self._weights(theta), x)
        return (
            None
            if both is None
            else (self.output_predictive(both[0], self._split_log_noise(theta)), both[1])
        )

    # Bounds over all inputs of an attack
    def margin_bounds(
        self, parameters: Tensor | None, y: Tensor, inputs: Perturbations
    ) -> MarginBounds:
        """Lower bounds of f_y − f_c for K networks θ [K, P'], or for the module's weights
        (None)."""
        weights = self.theta.detach()[None] if parameters is None else self._weights(parameters)
        layers = self.layers(weights)
        return network_margins(layers, self.front, self.activation_name, self.n_outputs, y, inputs)

    # Last layer integrated out
    def integrate_out(self) -> LastLayerMarginal:
        """The log density of all layers but the last, which is integrated out.

        Raises ConfigMismatchError without a closed form: for classes, several tasks, or no hidden
        layer."""
        if self.target != "real" or self.n_tasks > 1 or len(self.shapes) - self.first < 2:
            raise ConfigMismatchError(
                "inference.collapse=last_layer: requires one real-valued label per row and a "
                "hidden layer; set it to none"
            )
        return LastLayerMarginal(self, sum(self.pieces[-2:]), self.features)


def _layer_map(layers: Layers) -> Affine:
    """Affine maps of one network."""
    return lambda layer, h: affine(h, *layers[layer])


def _batch_layers(layers: Layers) -> Affine:
    """Batched affine maps of K networks, for h [B, in] or [K, B, in]: [K, B, out]."""

    def affine(layer: int, h: Tensor) -> Tensor:
        weight, bias = layers[layer]
        # one output: batched matrix products with single columns or rows are slow
        if weight.shape[-2] == 1:
            return (h * weight).sum(-1, keepdim=True) + bias[:, None]
        return torch.baddbmm(bias[:, None], h.expand(len(weight), *h.shape[-2:]), weight.mT)

    return affine


def _glorot(
    n: int,
    generator: torch.Generator,
    shapes: list[tuple[int, int]],
    first: int,
    window: int,
    n_outputs: int,
) -> Tensor:
    """Weights of n networks [n, P], uniform with Glorot's limits; biases 0.

    The first ``first`` layers are convolutions with a window of ``window`` pixels.
    """
    parts = []
    for layer, (out, inside) in enumerate(shapes):
        # The head of every task is a separate layer with its own fan-out.
        fan_out = out if layer < len(shapes) - 1 else n_outputs
        if layer < first:
            fan_out = out * window  # windows that contain a pixel, times their channels
        limit = math.sqrt(6 / (inside + fan_out))
        u = torch.rand(
            n, out * inside, generator=generator, dtype=torch.float64, device=generator.device
        )
        parts += [limit * (2 * u - 1), u.new_zeros(n, out)]
    return torch.cat(parts, 1)
