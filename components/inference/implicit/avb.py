"""Adversarial variational Bayes."""

from __future__ import annotations

from components.inference.implicit.side_by_side import ReplicableAdversarial
from components.registry import register


@register("inference", "avb")
class AVB(ReplicableAdversarial):
    """Adversarial variational Bayes (AVB): an implicit posterior minimising KL(q ‖ posterior).

        L(φ) = N/B Σ_b K⁻¹ Σ_k log p(y_b|x_b, θ_k) − β E_q[T(θ̃) + log r(θ) − log p(θ)]
        θ_k = f_φ(ε_k)

    The posterior is a distribution of network weights.  AVB is the limit α → 0 of ``aadm``, with
    the same generator, adaptive contrast, discriminator T and warm-up β. ``discriminator: prior``
    is AVB without adaptive contrast: T distinguishes θ from draws of the prior, and the KL is
    E_q[T(θ)] (eq. 13, Algorithm 1).  L is the evidence lower bound only for the optimal T, which
    cannot be verified, so Info has ``objective``.

    Source: Mescheder, Nowozin and Geiger (2017), Algorithms 1 and 2; Rodríguez
    Santana and Hernández-Lobato (2020), eqs. (13) and (15).
    """

    @property
    def power(self) -> float:
        return 0.0
