"""Standard deviations of states drawn given their noise in units of them, compiled: the bits of
``inference.structural``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor

from components.maths.compiled.loops import Array, compile_loop
from components.series.fast.simulation_smoother import product, whole
from components.series.maths.simulation_smoother import StateLayout


def log_prior(sigma: float, df: float, squares: float) -> float:
    """log p(σ) up to a constant, 1/σ² ~ Gamma(df/2, squares/2)."""
    return -(df + 1) * math.log(sigma) - squares / (2 * sigma * sigma)


def interweave(
    F: Array,
    used: Array,
    start: Array,
    columns: Array,
    values: Array,
    owner: Array,
    df: Array,
    squares: Array,
    upper: Array,
    left: Array,
    weights: Array,
    z: Array,
    u: Array,
    sigma: Array,
    states: Array,
    D: Array,
    moved: Array,
) -> None:
    """σ [S] and states [n, d] of one chain after the second draw, in their arrays."""
    n, d = states.shape
    for j in range(1, len(sigma)):
        now = sigma[j]
        for i in range(d):
            D[0, i] = 0.0
        for t in range(n - 1):
            product(start, columns, values, D[t], D[t + 1])
            product(start, columns, values, states[t], moved)
            for i in range(d):
                if owner[i] == j:
                    D[t + 1, i] += (states[t + 1, i] - moved[i]) / now
        a = 0.0
        b = 0.0
        for t in range(n):
            answer = 0.0
            signal = 0.0
            for i in used:
                answer += F[t, i] * D[t, i]
                signal += F[t, i] * states[t, i]
            weighed = weights[t] * answer
            a += weighed * answer
            b += weighed * (left[t] - signal + now * answer)
        s = b / a + z[j] * (1 / math.sqrt(a))
        new = abs(s)
        odds = log_prior(new, df[j], squares[j]) - log_prior(now, df[j], squares[j])
        if new <= upper[j] and math.log(1 - u[j]) < odds:
            sigma[j] = new
            for t in range(n):
                for i in range(d):
                    states[t, i] += (s - now) * D[t, i]


compilable = (product, log_prior, interweave)


def _chains(
    F: Array,
    used: Array,
    start: Array,
    columns: Array,
    values: Array,
    owner: Array,
    df: Array,
    squares: Array,
    upper: Array,
    left: Array,
    weights: Array,
    z: Array,
    u: Array,
    sigma: Array,
    alpha: Array,
) -> None:
    C, n, d = alpha.shape
    D = np.empty((n, d))
    moved = np.empty(d)
    for c in range(C):
        w = weights[c % len(weights)]
        interweave(
            F,
            used,
            start,
            columns,
            values[c],
            owner,
            df,
            squares,
            upper,
            left[c],
            w,
            z[c],
            u[c],
            sigma[c],
            alpha[c],
            D,
            moved,
        )


@cache
def _loop() -> Callable[..., None]:
    return compile_loop(_chains, compilable)


def draw(
    layout: StateLayout,
    G: Tensor,
    owner: tuple[int, ...],
    prior: Tensor,
    left: Tensor,
    weights: Tensor,
    z: Tensor,
    u: Tensor,
    sigma: Tensor,
    alpha: Tensor,
) -> tuple[Tensor, Tensor]:
    """Second draw of (σ [C, S], α [C, n, d]), on the CPU.

    Args:
        owner: index of the scale that owns the noise of each state (0: no owner).
        prior: [3, S] df, df guess² and upper.

    Raises:
        ImportError: numba is not installed.
    """
    sigma = sigma.clone()
    alpha = alpha.clone(memory_format=torch.contiguous_format)
    used = (layout.F != 0).any(0).nonzero().flatten()
    rows = (
        whole(layout.rows.start),
        whole(layout.rows.columns),
        layout.rows.numbers(G).contiguous().numpy(),
    )
    arguments = (*prior.unbind(), left, weights, z, u, sigma, alpha)
    _loop()(
        layout.F.numpy(),
        used.numpy(),
        *rows,
        whole(owner),
        *(x.contiguous().numpy() for x in arguments),
    )
    return sigma, alpha
