"""Adversarial variational Bayes."""

from __future__ import annotations

from components.inference.implicit.side_by_side import ReplicableAdversarial
from components.registry import register


@register("inference", "avb")
class AVB(ReplicableAdversarial):
    """Adversarial variational Bayes (AVB): an implicit posterior minimising KL(q ‖ posterior).

        L(φ) = N/B Σ_b K⁻¹ Σ_k log p(y_b|x_b, θ_k) − β E_q[T(θ̃) + log r(θ) − log p(θ)]
        θ_k = f_φ(ε_k)

    The posterior is over the weights of a network.  AVB is the limit α → 0 of ``aadm``,
    from which it takes everything else: generator, adaptive contrast, discriminator T,
    warm-up β.  ``discriminator: prior`` is AVB without adaptive contrast: T tells θ from
    draws of the prior, and the KL is E_q[T(θ)] (eq. 13, Algorithm 1).  L is the evidence
    lower bound only for the best T, and nothing shows whether the best T has been found:
    Info says ``objective``.

    Source: Mescheder, Nowozin and Geiger (2017), Algorithms 1 and 2; Rodríguez
    Santana and Hernández-Lobato (2020), eqs. (13) and (15).
    """

    @property
    def power(self) -> float:
        return 0.0
