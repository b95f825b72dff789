"""Affine layers and the derivative in their inputs, written out: what an attack asks of a network
at every step."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from components.contracts.capabilities.networks import Affine
from components.models.networks.activations import ActivationFunction


def forward(
    x: Tensor, affine: Affine, layers: int, bend: ActivationFunction
) -> tuple[Tensor, list[Tensor]]:
    """f = z_L [..., B, out] of z_l = h_{l−1} W_lᵀ + b_l, h_0 = x [..., B, in], and what the reverse
    reads of each bend."""
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

    D_l = diag a'(z_l).  Of K networks that saw the same rows [B, in] (``shared``) it is the sum."""
    for weight, activation in zip(reversed(weights[1:]), reversed(kept), strict=True):
        g = g @ weight
        g = bend.derivative(g, activation, g)
    if shared:
        # [B, K · out] [K · out, in]: one product of all
        return g.transpose(0, 1).flatten(1) @ weights[0].flatten(0, 1)
    return g @ weights[0]
