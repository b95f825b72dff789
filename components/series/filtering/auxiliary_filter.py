"""The auxiliary particle filter."""

from __future__ import annotations

from components.contracts.capabilities import TransitionMean
from components.registry import register
from components.series.filtering.look_ahead import LookAheadFilter


@register("inference", "auxiliary_filter")
class AuxiliaryFilter(LookAheadFilter[TransitionMean]):
    """Auxiliary particle filter: particles are selected by the likelihood of their expected next
    state, then moved.

    k_t ~ w_{t−1}^k ǧ_t(x_{t−1}^k), x_t ~ f_t(· | x_{t−1}^{k_t}), w_t ∝ g_t(y_t | x_t) /
    ǧ_t(x_{t−1}^{k_t}) with ǧ_t(x_{t−1}) = g_t(y_t | μ_t(x_{t−1})) + c_t, μ_t the mean of the
    transition and c_t = ``stabiliser`` · sup g.  Particles are [R, N, dx].  The product over t of
    Σ_n w_{t−1}^n ǧ_t times the mean of the unnormalised w_t estimates the evidence without bias.
    Predictions are by default Σ_n w_{t−1}^n h over independent draws from f; ``selected`` ones are
    means over particles selected with y_t, and so depend on it.  A missing observation leaves the
    weights unchanged.  Raises NumericalError if all weights of a replicate are zero.

    Source: Pitt & Shephard (1999); Johansen & Doucet (2008); Boustati (2021), appendix D.1.3."""
