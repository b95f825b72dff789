"""DisARM: ARM with the uniform number integrated out."""

from __future__ import annotations

from torch import Tensor

from components.gradients.bernoulli.antithetic import AntitheticPairs
from components.registry import register


@register("gradient", "disarm")
class DisARM(AntitheticPairs):
    """DisARM: the mean of ARM given its pair of draws, so that variables equal in both draws add no
    noise.

        ∂/∂α_l E f = E[½ (f(z) − f(z̃)) (z_l − z̃_l) σ(|α_l|)],   z_l = 1[u < σ(α_l)],   z̃_l = 1[1 − u < σ(α_l)]

    With the same evaluations of f, ARM has at least this variance; layers are treated as in ARM.  f
    and α [S, B, …].  Terms: elbo, of the whole data set in nats.

    Source: Dong, Mnih and Tucker (2020)."""

    @staticmethod
    def weight(u: Tensor, z: Tensor, other: Tensor, alpha: Tensor) -> Tensor:
        return 0.5 * (z - other) * alpha.abs().sigmoid()
