"""The bootstrap particle filter."""

from __future__ import annotations

from components.contracts.capabilities import StateSpace
from components.registry import register
from components.series.filtering.particle_filter import AdaptiveFilter


@register("inference", "bootstrap_filter")
class BootstrapFilter(AdaptiveFilter[StateSpace]):
    """Bootstrap particle filter, with R replicates of N particles in parallel.

    x̄_t ~ f_t(· | x_{t−1}), w_t ∝ w_{t−1} g_t(y_t | x̄_t), then x_t ~ Σ_n w_t^n δ(x̄_t^n)
    and equal weights if the effective sample size is at most ``resample_below`` · N.
    Particles are [R, N, dx]; the product over t of Σ_n w_{t−1}^n g_t is an unbiased
    estimate of the evidence.  A missing observation leaves the weights unchanged.  Raises
    NumericalError if all weights of a replicate are zero.

    Source: Gordon, Salmond and Smith (1993); Boustati (2021), Algorithm 6 with q = f and G = g.
    """
