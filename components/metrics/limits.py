"""Limits for accepting the results of a run, each with its source."""

from __future__ import annotations

import math
from statistics import NormalDist

RHAT = 1.01  # largest R̂; Vehtari et al. (2021), section 4.1
# largest nested R̂ for few draws per chain; ours: independent draws have √(1 + K/(C N)), so that
# 1.01 would require 50 draws of each superchain, and more for the largest of many coordinates
RHAT_NESTED = 1.05
# smallest bulk and tail ESS; Vehtari et al. (2021), section 4.1: 400 for four chains
ESS_PER_CHAIN = 100
# smallest fraction of missing information; Betancourt (2016), section 5, and Stan's warning
E_BFMI = 0.3
# smallest mean rate of a chain of HMC or NUTS; Betancourt, Byrne and Girolami (2014), section 3
HAMILTONIAN_ACCEPTANCE = 0.6
# of random walks, with MALA among the others; Roberts and Rosenthal (2001), section 5
METROPOLIS_ACCEPTANCE = 0.15
LEAST_ESS = (
    # effective number of a filter's particles below which one of them carries more than half of the
    # weight; Snyder et al. (2008)
    2.0
)
# share of an observation, or of a difference between weights, below which a filter ignores it;
# ours
MIN_USED_SHARE = 1e-3
# largest relative rise of a bound over the last steps; Kucukelbir et al. (2017), section 2.6
BOUND_GAIN = 0.01
BOUND_NOISE = 2.0  # standard errors by which a rise must exceed the noise of minibatches
BIAS_P = (
    # smallest p-value, corrected for their number, of differences between gradients with the same
    # mean
    1e-3
)
# fraction of 2 log 2 below which q and its Gaussian do not overlap, and the log ratio has no scale
DISCRIMINATOR_LOSS = 0.05
# smallest p-value, corrected for their number, of errors of known moments; ours: one false alarm in
# ten thousand runs
MOMENTS_P = 1e-4
# largest skewness of a mean of draws, γ/√ESS, that Hall's transformation of its z removes; ours:
# θ² of a Gaussian has 0.14 at an ESS of 400
MOMENTS_SKEW = 0.2
LABELS = 10  # minimum test labels of a task to detect a collapse to one class
# share of the most frequent class above which always predicting it may be optimal
LARGEST_CLASS = 0.95
# minimum recorded bounds for this check in each of the two halves of the last fifth of a run
BOUND_LINES = 10


def pareto_k(draws: int) -> float:
    """Largest k̂ for S importance weights, min(1 − 1/log₁₀ S, 0.7); Vehtari et al. (2024), section
    3.2."""
    return min(1 - 1 / math.log10(draws), 0.7)


def largest_z(tests: int) -> float:
    """Largest |z| of the given number of normal variables at level ``MOMENTS_P``; Holm (1979)."""
    return NormalDist().inv_cdf(1 - MOMENTS_P / (2 * tests))
