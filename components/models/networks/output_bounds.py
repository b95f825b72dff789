"""Bounds of the logits of K networks over all inputs that an attack can generate from a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from components.contracts.capabilities.margins import MarginBounds
from components.contracts.capabilities.networks import Layers
from components.maths.intervals import (
    IntervalVector,
    Perturbations,
    Reach,
    affine_bounds,
    margin_bounds,
    rounding_error,
    unit_roundoff,
)
from components.models.networks.activations import Activation, activation_bounds

if TYPE_CHECKING:
    from components.models.networks.convolutions import Convolutions


def network_margins(
    layers: Layers,
    front: Convolutions | None,
    activation: Activation,
    classes: int,
    y: Tensor,
    inputs: Perturbations,
) -> MarginBounds:
    """Lower bounds of the margins of K networks, by interval propagation.

    z_l = W_l h_{l−1} + b_l has bounds W_l μ + b_l ± |W_l| r, and h_l bounds a(z_l); the first layer
    uses the ball itself, by its dual norm, and the last one differences of its rows.

    Args:
        layers: (W [K, out, in], b [K, out]) of each layer, convolutions first.
        front: the convolutions; None for no convolutions.
        activation: a.
        classes: number of classes C of a task.
        y: class numbers [B, T].
        inputs: the inputs that an attack can generate from the B rows.

    Source: Gowal et al. (2018), section 3.
    """
    unit = unit_roundoff(layers[0][0].dtype)
    exact = [(w.double(), b.double()) for w, b in layers]
    h: Reach = inputs
    first = 0
    if front is not None:
        first = len(front.shapes)
        h = _convolution_bounds(front, exact[:first], inputs, unit)
    for weight, bias in exact[first:-1]:
        h = activation_bounds(activation, affine_bounds(weight, bias, h, unit), unit)
    weight, bias = exact[-1]
    return MarginBounds(*margin_bounds(weight, bias, h, y, classes, unit), unit)


def _convolution_bounds(
    front: Convolutions, layers: Layers, inputs: Perturbations, unit: float
) -> IntervalVector:
    """Bounds of the features of K networks [K, B, F]."""
    parts = [
        _one_network(front, [(w[k], b[k]) for w, b in layers], inputs, unit)
        for k in range(len(layers[0][0]))
    ]
    return IntervalVector(*(torch.stack(ends) for ends in zip(*parts, strict=True)))


def _one_network(
    front: Convolutions, layers: Layers, inputs: Perturbations, unit: float
) -> IntervalVector:
    """Bounds of the features of one network [B, F]."""
    mean = front.mean.double()
    std = front.std.double()

    def normalise(x: Tensor) -> Tensor:
        return (x.unflatten(-1, front.image) - mean) / std

    h = IntervalVector(normalise(inputs.x + inputs.low), normalise(inputs.x + inputs.high))
    size = (inputs.largest.unflatten(-1, front.image) + mean.abs()) / std
    h = h.widen(rounding_error(1, unit) * size)
    for layer, (weight, bias) in enumerate(layers):
        kernels = weight.unflatten(-1, (-1, front.kernel, front.kernel))
        centre = _convolve(front, (h.low + h.high) / 2, kernels, bias)
        radius = _convolve(front, (h.high - h.low) / 2, kernels.abs())
        slack = rounding_error(weight.shape[-1], unit) * _convolve(
            front, h.largest, kernels.abs(), bias.abs()
        )
        z = IntervalVector(centre - radius, centre + radius)
        if layer == 0 and inputs.norm is not None:
            # W ∗ δ/s by the dual norm of a window's weights, with fewer weights at the border
            reach = inputs.eps * inputs.dual(kernels / std, (1, 2, 3))[:, None, None]
            middle = _convolve(front, normalise(inputs.x), kernels, bias)
            z = z.intersect((middle - reach, middle + reach))
        h = activation_bounds(front.activation_name, z.widen(slack), unit)
        if front.stride == 1:
            h = IntervalVector(F.max_pool2d(h.low, 2), F.max_pool2d(h.high, 2))
    return IntervalVector(h.low.flatten(1), h.high.flatten(1))


def _convolve(
    front: Convolutions, h: Tensor, kernels: Tensor, bias: Tensor | None = None
) -> Tensor:
    return F.conv2d(h, kernels, bias, stride=front.stride, padding=front.kernel // 2)
