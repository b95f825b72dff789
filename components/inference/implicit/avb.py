"""Adversarial variational Bayes."""

from __future__ import annotations

from components.inference.implicit.side_by_side import Replicable
from components.registry import register


@register("inference", "avb")
class AVB(Replicable):
    """Adversarial variational Bayes (AVB): an implicit posterior over a network's weights that minimises KL(q ‖ posterior).

        L(φ) = N/B Σ_b K⁻¹ Σ_k log p(y_b|x_b, θ_k) − β E_q[T(θ̃) + log r(θ) − log p(θ)],   θ_k = f_φ(ε_k)

    The limit α → 0 of ``aadm``, of which it has all else: generator, adaptive contrast, discriminator T, warm-up β.  L is the
    evidence lower bound for the best T alone, of which nothing tells that it has been found: Info says ``objective``.

    Source: Mescheder, Nowozin and Geiger (2017), Algorithm 2; Rodríguez Santana and Hernández-Lobato (2020), eq. (15)."""

    @property
    def power(self) -> float:
        return 0.0
