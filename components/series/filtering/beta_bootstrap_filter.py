"""The bootstrap particle filter made robust by the β-divergence."""

from __future__ import annotations

from components.contracts.capabilities import PowerIntegral
from components.registry import register
from components.series.filtering.particle_filter import AdaptiveFilter, BetaLoss


@register("inference", "beta_bootstrap_filter")
class BetaBootstrapFilter(BetaLoss, AdaptiveFilter[PowerIntegral]):
    """Bootstrap particle filter with the outlier-bounding β-divergence likelihood.

    x̄_t ~ f_t(· | x_{t−1}), w_t ∝ w_{t−1} G^β(y_t | x̄_t), G^β(y|x) = exp(g(y|x)^β/β − ∫
    g(y'|x)^{β+1} dy'/(β+1)), then resampling as in the bootstrap filter, which is the case
    β = 0.  Particles are [R, N, dx].  The log normaliser belongs to the generalised posterior and
    is not an evidence.  A missing observation leaves the weights unchanged.  Raises NumericalError
    if all weights of a replicate are zero.

    Source: Boustati (2021), eq. (6.6) and Algorithm 7.
    """
