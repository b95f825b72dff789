"""Activations of networks, and their derivatives written out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from components.maths.intervals import IntervalVector

Activation = Literal["relu", "leaky_relu", "tanh", "gelu", "softplus", "identity"]
LEAK = 0.2  # slope of leaky ReLUs below 0, as TensorFlow has it
ATEN = torch.ops.aten  # the kernels that differentiate activations elsewhere, so that bits agree
ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "leaky_relu": partial(F.leaky_relu, negative_slope=LEAK),
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "softplus": F.softplus,
    "identity": lambda h: h,
}


class ActivationFunction(NamedTuple):
    """Activation h = a(z) and its derivative, which overwrite values no longer needed.

    Half of the time outside matrix products is spent waiting for memory.
    """

    value: Callable[[Tensor], Tensor]  # z -> h, in the place of z unless it ``keeps`` z
    # ∂/∂h, which may have one row for all units, the stored value, and where to write (either of
    # both) -> ∂/∂z
    derivative: Callable[[Tensor, Tensor, Tensor], Tensor]
    keeps: bool = False  # whether the derivative is read off z, not h


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

GELU_LOWEST = -0.7517915246935645  # where z Φ(z) is smallest, falling before and rising behind it
ULPS = 16  # of an activation's own rounding, in units of 1 + |z|


def activation_bounds(name: Activation, z: IntervalVector, unit: float) -> IntervalVector:
    """Ends of a(z) for z between two ends, as a is computed with a unit roundoff.

    All activations rise, so that the ends go to the ends, but gelu, which falls first.
    """
    value = ACTIVATIONS[name]
    low = value(z.low)
    high = value(z.high)
    if name in ("relu", "identity"):  # no rounding
        return IntervalVector(low, high)
    if name == "gelu":
        low, high = torch.minimum(low, high), torch.maximum(low, high)
        falls_and_rises = (z.low < GELU_LOWEST) & (z.high > GELU_LOWEST)
        low = torch.where(falls_and_rises, value(z.low.new_tensor(GELU_LOWEST)), low)
    slack = ULPS * unit * (1 + z.largest)
    if name == "softplus":
        slack = slack + 3e-9  # e^{−20}, which the library leaves out for z > 20
    return IntervalVector(low, high).widen(slack)
