"""Diagnostics of importance weights: effective sample size, relative variance, and tail shape."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from components.maths.particles.resampling import effective_sample_size
from components.metrics.array_stats import load_array_stats

# the Pareto tail is the largest fifth of few weights, and its fit requires five of them
FEWEST_WEIGHTS = 25


def weight_ess(log_weights: Tensor) -> float:
    """Effective sample size of importance sampling, (Σ w)² / Σ w², from unnormalised log weights of
    any shape.

    Source: Kong (1992)."""
    return float(
        effective_sample_size(log_weights.detach().double().flatten().softmax(0).unsqueeze(0))
    )


def log_relative_variance(values: Tensor, log_weights: Tensor) -> float:
    """log σ²_NIS(f)/Var_π f of self-normalised importance sampling for f = θ_j, averaged over the
    coordinates; its exponential is the number of draws of q equivalent to one draw of π.

        σ²_NIS(f) = E_q[(w/E_q w)² (f − πf)²] ≈ T Σ_t w̄_t² (f_t − Î)²,   w̄ normalised weights

    An estimate from the draws themselves, at most about log T.  Constant coordinates are omitted.
    Args: values [C, N, P'], log_weights [C, N].

    Source: Owen (2013), eq. (9.8); Bardenet (2021), Proposition 4.1.1."""
    theta = values.detach().double().flatten(0, 1)
    weights = log_weights.detach().double().flatten().softmax(0)
    square = (theta - weights @ theta).square()
    variance = weights @ square
    each = len(theta) * (weights.square() @ square) / variance
    return float(each[variance > 0].log().mean())


def pareto_k(log_weights: Tensor) -> float:
    """Shape k̂ of the generalised Pareto distribution fitted to the largest importance weights.

    Above 0.7 the estimates are unreliable, and for k ≥ ½ the weights have infinite variance.  It is
    −∞ if the largest weights are all within a tenth of each other, so that a tail cannot be fitted
    (they accumulate at an end point, where the likelihood for k < −1 has no maximum and the fit is
    arbitrary).  (ArviZ's ``pareto_khat`` fits the logarithms of the weights even if it is called
    with log weights.)

    Source: Vehtari et al. (2024)."""
    values = log_weights.detach().double().cpu().flatten().numpy()
    tail = np.sort(values)[-int(min(len(values) // 5, 3 * math.sqrt(len(values)))) :]
    if tail[-1] - tail[0] <= math.log(1.1):
        return -math.inf
    return float(load_array_stats().psislw(-values, r_eff=1)[1])
