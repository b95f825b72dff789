"""Affine layers and the derivative in their inputs, written out: what an attack asks of a network at every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from components.contracts.capabilities.networks import Affine

LEAK = 0.2  # slope of leaky ReLUs below 0, as TensorFlow has it
ATEN = torch.ops.aten  # the kernels that differentiate activations elsewhere, so that bits agree


class Bend(NamedTuple):
    """An activation h = a(z) and its derivative, which overwrite what they are given.

    Half of what an attack does besides products of matrices is waiting for memory."""

    value: Callable[[Tensor], Tensor]  # z -> h, in the place of z unless it ``keeps`` z
    derivative: Callable[[Tensor, Tensor], Tensor]  # ∂/∂h and what is kept -> ∂/∂z in the place of ∂/∂h
    keeps: bool = False  # whether the derivative is read off z, not h


BENDS: dict[str, Bend] = {
    "relu": Bend(torch.relu_, lambda g, h: ATEN.threshold_backward.grad_input(g, h, 0, grad_input=g)),
    "leaky_relu": Bend(
        lambda z: F.leaky_relu_(z, LEAK),
        lambda g, h: ATEN.leaky_relu_backward.grad_input(g, h, LEAK, True, grad_input=g),
    ),
    "tanh": Bend(torch.tanh_, lambda g, h: ATEN.tanh_backward.grad_input(g, h, grad_input=g)),
    "gelu": Bend(F.gelu, lambda g, z: ATEN.gelu_backward.grad_input(g, z, grad_input=g), keeps=True),
    "softplus": Bend(F.softplus, lambda g, z: ATEN.softplus_backward.grad_input(g, z, 1, 20, grad_input=g), keeps=True),
    "identity": Bend(lambda z: z, lambda g, z: g),
}


def forward(x: Tensor, affine: Affine, layers: int, bend: Bend) -> tuple[Tensor, list[Tensor]]:
    """f = z_L [..., B, out] of z_l = h_{l−1} W_lᵀ + b_l, h_0 = x [..., B, in], and what the reverse reads of each bend."""
    z, kept = affine(0, x), []
    for layer in range(1, layers):
        h = bend.value(z)
        kept.append(z if bend.keeps else h)
        z = affine(layer, h)
    return z, kept


def back(g: Tensor, weights: Sequence[Tensor], kept: Sequence[Tensor], bend: Bend, shared: bool) -> Tensor:
    """∂/∂x = W_1ᵀ D_1 W_2ᵀ … D_{L−1} W_Lᵀ ∂/∂f, from the right, for g = ∂/∂f [..., B, out] and W_l [..., out, in].

    D_l = diag a'(z_l).  Of K networks that saw the same rows [B, in] (``shared``) it is the sum."""
    for weight, own in zip(reversed(weights[1:]), reversed(kept), strict=True):
        g = bend.derivative(g @ weight, own)
    if shared:
        return g.transpose(0, 1).flatten(1) @ weights[0].flatten(0, 1)  # [B, K · out] [K · out, in]: one product of all
    return g @ weights[0]
