"""Activations of networks and their explicit derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from components.maths.intervals import IntervalVector

Activation = Literal["relu", "leaky_relu", "tanh", "gelu", "softplus", "identity"]
LEAK = 0.2  # slope of leaky ReLUs below 0, as in TensorFlow
ATEN = torch.ops.aten  # autograd's own kernels, for bit-identical derivatives
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "leaky_relu": partial(F.leaky_relu, negative_slope=LEAK),
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "softplus": F.softplus,
    "identity": lambda h: h,
}


class ActivationFunction(NamedTuple):
    """Activation h = a(z) and its derivative, computed in place.

    Memory access takes half of the time outside matrix products.
    """

    value: Callable[[Tensor], Tensor]  # z -> h, in place unless it ``keeps`` z
    # ∂/∂h (possibly one row for all units), the stored value, and the output (either of the two) ->
    # ∂/∂z
    derivative: Callable[[Tensor, Tensor, Tensor], Tensor]
    keeps: bool = False  # whether the derivative is computed from z instead of h


ACTIVATION_FUNCTIONS: dict[Activation, ActivationFunction] = {
    "relu": ActivationFunction(
        torch.relu_,  # g 1[h > 0]
        lambda g, h, out: ATEN.threshold_backward.grad_input(g, h, 0, grad_input=out),
    ),
    "leaky_relu": ActivationFunction(
        lambda z: F.leaky_relu_(z, LEAK),  # g (1 or LEAK)
        lambda g, h, out: ATEN.leaky_relu_backward.grad_input(g, h, LEAK, True, grad_input=out),
    ),
    "tanh": ActivationFunction(
        torch.tanh_,  # g (1 − h²)
        lambda g, h, out: ATEN.tanh_backward.grad_input(g, h, grad_input=out),
    ),
    "gelu": ActivationFunction(
        F.gelu,  # g (Φ(z) + z φ(z))
        lambda g, z, out: ATEN.gelu_backward.grad_input(g, z, grad_input=out),
        keeps=True,
    ),
    "softplus": ActivationFunction(
        F.softplus,  # g σ(z)
        lambda g, z, out: ATEN.softplus_backward.grad_input(g, z, 1, 20, grad_input=out),
        keeps=True,
    ),
    "identity": ActivationFunction(lambda z: z, lambda g, z, out: g.expand_as(z)),
}

GELU_LOWEST = -0.7517915246935645  # minimiser of z Φ(z), which falls below and rises above it
ULPS = 16  # rounding error of an activation, in units of 1 + |z|


def activation_bounds(name: Activation, z: IntervalVector, unit: float) -> IntervalVector:
    """Bounds of the computed a(z) for z between two bounds, with a unit roundoff.

    All activations except gelu are increasing, so bounds map to bounds; gelu first decreases.
    """
    value = ACTIVATIONS[name]
    low = value(z.low)
    high = value(z.high)
    if name in ("relu", "identity"):  # exact
        return IntervalVector(low, high)
    if name == "gelu":
        low, high = torch.minimum(low, high), torch.maximum(low, high)
        falls_and_rises = (z.low < GELU_LOWEST) & (z.high > GELU_LOWEST)
        low = torch.where(falls_and_rises, value(z.low.new_tensor(GELU_LOWEST)), low)
    slack = ULPS * unit * (1 + z.largest)
    if name == "softplus":
        slack = slack + 3e-9  # e^{−20}, omitted by the library for z > 20
    return IntervalVector(low, high).widen(slack)
