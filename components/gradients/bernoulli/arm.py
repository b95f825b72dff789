"""Augment-REINFORCE-merge."""

from __future__ import annotations

from torch import Tensor

from components.gradients.bernoulli.antithetic import AntitheticPairs
from components.registry import register


@register("gradient", "arm")
class ARM(AntitheticPairs):
    """ARM: one uniform number for each binary variable, used as u and as 1 − u, and the difference
    of f between the two.

        ∂/∂α_l E f = E[(f(z) − f(z̃)) (½ − u)],   z_l = 1[u < σ(α_l)],   z̃_l = 1[1 − u < σ(α_l)],   u ~ U(0, 1)

    with respect to log odds α_l, layer by layer, with the layers above drawn given each of z_l and
    z̃_l; f and α [S, B, …].  The derivative with respect to probabilities σ(α) differs.
    Terms: elbo, of the whole data set in nats.

    Source: Yin and Zhou (2019), Theorem 1; for layers, each given the one below, our derivation."""

    @staticmethod
    def weight(u: Tensor, z: Tensor, other: Tensor, alpha: Tensor) -> Tensor:
        return 0.5 - u
