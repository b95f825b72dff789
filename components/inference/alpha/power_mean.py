"""Log power means, without overflow or loss of precision as the power approaches 0."""

from __future__ import annotations

from torch import Tensor


def log_power_mean(ell: Tensor, power: float | Tensor) -> Tensor:
    """Log power mean log (K⁻¹ Σ_k e^{a ℓ_k})^{1/a}, a = ``power``, over dimension 0.

    Shapes [K, …] -> […].

    If a = 0 it is the mean of ℓ.  A power given as a tensor [] must be positive.  The value is
    computed as m + log1p(K⁻¹ Σ_k expm1(a (ℓ_k − m)))/a, with m the dominant ℓ_k: no term exceeds 0,
    and precision is not lost if a ℓ is small compared with 1.
    """
    if not isinstance(power, Tensor) and power == 0:
        return ell.mean(0)
    m = (
        ell.amax(0) if isinstance(power, Tensor) or power > 0 else ell.amin(0)
    ).detach()  # the value does not depend on m
    return m + (power * (ell - m)).expm1().mean(0).log1p() / power
