"""PAC-Bayes bounds on the risk of a randomised classifier."""

from __future__ import annotations

import math

BISECTIONS = 60


def binary_kl(q: float, p: float) -> float:
    """kl(q ‖ p) = q log q/p + (1 − q) log (1 − q)/(1 − p) of two Bernoulli distributions, in
    nats."""
    first = 0.0 if q == 0 else q * math.log(q / p) if p > 0 else math.inf
    second = 0.0 if q == 1 else (1 - q) * math.log((1 - q) / (1 - p)) if p < 1 else math.inf
    return first + second


def invert_kl(q: float, nats: float) -> float:
    """The largest p with kl(q ‖ p) ≤ ``nats``, rounded upwards."""
    low = q
    high = 1.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if binary_kl(q, middle) <= nats else (low, middle)
    return high


def gibbs_risk_bound(
    risk: float, kl: float, rows: int, draws: int, delta: float, delta_draws: float
) -> float:
    """Upper bound on the risk of the Gibbs classifier, with probability 1 − δ − δ' over the rows and
    the draws.

        kl(R̂_m ‖ R̂) ≤ log(2/δ')/m          R̂_m: mean error of m networks drawn from q
        kl(R̂ ‖ R) ≤ (KL(q ‖ p) + log(2√n/δ))/n

    each inverted in its second argument; p must not depend on the rows of R̂.

    Args:
        risk: R̂_m, mean 0–1 loss of the draws on the n rows.
        kl: KL(q ‖ p) in nats.

    Source: Maurer (2004), Theorem 5; Langford & Caruana (2001), Theorem 2.5; Dziugaite & Roy
    (2017), section 3."""
    empirical = invert_kl(risk, math.log(2 / delta_draws) / draws)
    return invert_kl(empirical, (kl + math.log(2 * math.sqrt(rows) / delta)) / rows)
