"""Adversarial α-divergence minimisation."""

from __future__ import annotations

from pydantic import field_validator

from components.contracts.roles import AboveZeroToOne
from components.inference.implicit.side_by_side import ReplicableAdversarial
from components.registry import register

Alpha = AboveZeroToOne


@register("inference", "aadm")
class AADM(ReplicableAdversarial):
    """Adversarial α-divergence minimisation (AADM): an implicit posterior over weights.

        L_α(φ) = N/B Σ_b α⁻¹ log K⁻¹ Σ_k p(y_b|x_b, θ_k)^α − β KL(q_φ ‖ p)
        θ_k = f_φ(ε_k),  ε_k ~ N(μ, diag σ²)
        KL(q ‖ p) = E_q[T(θ̃) + log r(θ) − log p(θ)]
        max_T E_q[log σ(T(θ̃))] + E_{N(0, I)}[log(1 − σ(T(θ̃)))]

    A generator draws the weights of the network.  r is the Gaussian with
    the means and variances of the K draws, θ̃ the draws standardised by it (adaptive
    contrast); β rises from 0 to 1 in ``warmup`` steps.  Generator, noise and σ² of the labels share
    one Adam optimizer; the discriminator T has another.  α → 0 is ``avb``. ``discriminator: prior``
    trains T to distinguish the draws from the prior, r = p and θ̃ = θ/s, without adaptive contrast:
    the KL is E_q[T(θ̃)].  ``discriminator: none`` omits T; only the entropy of r remains, as a
    baseline.  ``rows: own`` draws K weights for each row, as the published experiments did.  L_α is
    not a bound, and if ε has fewer dimensions than θ the KL is infinite: Info has ``objective`` and
    ``discriminator_loss`` (2 log 2 is chance level; close to 0 the value of T no longer measures
    the difference).  θ [K, P], or [K·B, P] with ``rows: own``.

    ``alphas`` learns a posterior for each of several α in parallel, like replicates with
    ``side_by_side=true``, from the same starts, batches and noise as separate runs for each α.
    Scores and info are then named by α, as ``log_likelihood/0.5``; ``alpha`` is not used.

    Source: Rodríguez Santana and Hernández-Lobato (2020), eqs. (7) to (16), (27) and (28).
    """

    alpha: Alpha
    alphas: list[Alpha]

    @field_validator("alphas")
    @classmethod
    def _check_distinct(cls, alphas: list[float]) -> list[float]:
        if len({f"{alpha:g}" for alpha in alphas}) < len(alphas):
            raise ValueError("inference.alphas: a value occurs twice; list each value once")
        return alphas

    @property
    def power(self) -> float:
        return self.alpha

    @property
    def powers(self) -> list[float]:
        return self.alphas

    def variants(self) -> tuple[str, ...]:
        return tuple(f"{alpha:g}" for alpha in self.alphas)
