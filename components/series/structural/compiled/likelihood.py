"""Compiled log likelihood of a linear Gaussian series with its exact derivatives.

With v, f, K, a and P as in ``simulation_smoother``, a and P here given y_1 … y_t, and t = n … 1:

    q = Gᵀ r,  N ← GᵀN G,  s = v/f − Kᵀq,  D = 1/f + KᵀN K,
    r ← q + Fᵀ s,  N ← (I − K F)ᵀ N (I − K F) + FᵀF/f

    ∂ log p/∂o_t = s_t,  ∂/∂h_t = (s_t² − D_t)/2,  ∂/∂W = Σ_t diag(r_t r_tᵀ − N_t)/2,
    ∂/∂G = Σ_t r_t (a_t + P_t q_t)ᵀ − N_t G P_t

Source: Koopman and Shephard (1992); Durbin and Koopman (2012), section 7.3.3.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI
from components.maths.compiled.loops import Array, compiled, to_array
from components.maths.time_varying import TimeVaryingSystem
from components.series.structural.compiled.simulation_smoother import (
    StateWork,
    System,
    SystemMotion,
    filter_series,
    kept_values,
    state_work,
)


@compiled()
def _differentiate(
    y: Array,
    system: System,
    motion: SystemMotion,
    work: StateWork,
    G: Array,
    by_G: Array,
    by_W: Array,
    by_offset: Array,
    by_noise: Array,
) -> float:
    """log p(y) up to a constant; derivatives are added to the last four arrays."""
    value = filter_series(y, system, motion, work)
    r = np.zeros(len(G))
    N = np.zeros(G.shape)
    for t in range(len(y) - 1, -1, -1):
        K = work.gains[t]
        if t < len(y) - 1:
            by_W += (r * r - np.diag(N)) / 2
            q = r @ G
            NG = N @ G
            P = work.covariances[t]
            if system.seen[t]:
                P = P - np.outer(K, K) / work.weights[t]
            by_G += np.outer(r, work.means[t] + P @ q) - NG @ P
            r = q
            N = G.T @ NG
        if system.seen[t]:
            F = system.F[t]
            NK = N @ K
            D = work.weights[t] + K @ NK
            by_offset[t] = work.scaled[t] - K @ r
            by_noise[t] = (by_offset[t] ** 2 - D) / 2
            r = r + F * by_offset[t]
            N = N - np.outer(F, NK) - np.outer(NK, F) + D * np.outer(F, F)
    return value


def log_density(y: Tensor, system: System, moving: TimeVaryingSystem) -> tuple[float, Tensor]:
    """log p(y) of one series [n], and a scalar with the same derivatives, by G, W, the offset and
    the noise of a system with C = 1 whose constant parts are in ``system``."""
    G, W, noise = (to_array(x[0]) for x in (moving.G, moving.W, moving.noise))
    parts = (moving.G, moving.W, moving.offset, moving.noise)
    scores = [np.zeros(x.shape[1:]) for x in parts]
    motion = SystemMotion(
        kept_values(system, moving.G[0]), np.sqrt(W[system.noisy]), np.sqrt(noise)
    )
    work = state_work(system, filtered=True)
    value = _differentiate(to_array(y - moving.offset[0]), system, motion, work, G, *scores)
    value -= LOG_2PI / 2 * int(system.seen.sum())
    linear = [(x * torch.from_numpy(by).to(x)).sum() for x, by in zip(parts, scores, strict=True)]
    return value, torch.stack(linear).sum()
