"""Compiled stocks with inflows and decay."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from components.maths.compiled.loops import Array, compiled


def accumulate(flow: Array, kept: float, limit: float, s: Array) -> None:
    """s_1 = 0, s_{t+1} = (φ − κ u_t) s_t + u_t [n]; for κ = 0 by windows of doubling length.

    Σ_{j<2w} φ^j u_{t−j} = Σ_{j<w} φ^j u_{t−j} + φ^w Σ_{j<w} φ^j u_{t−w−j}: each pass is
    vectorised."""
    n = len(flow)
    s[0] = 0.0
    for t in range(1, n):
        s[t] = flow[t - 1]
        if limit > 0.0:
            s[t] += (kept - limit * flow[t - 1]) * s[t - 1]
    width = n if limit > 0.0 else 1
    power = kept
    while width < n:
        for t in range(n - 1, width - 1, -1):
            s[t] += power * s[t - width]
        power *= power
        width *= 2


@compiled()
def _accumulate_all(flow: Array, kept: Array, limits: Array, out: Array) -> None:
    C, n, k = out.shape
    s = np.empty(n)
    for c in range(C):
        for j in range(k):
            accumulate(flow[j], kept[c, j], limits[j], s)
            for t in range(n):
                out[c, t, j] = s[t]


def accumulate_stock(flow: Tensor, kept: Tensor, limits: Tensor) -> Tensor:
    """``maths.series.stocks.accumulate_stock`` for flows [n, k], φ [C, k] and κ [k] on the CPU; [C,
    n, k]."""
    out = kept.new_empty(len(kept), *flow.shape)
    _accumulate_all(
        flow.T.contiguous().numpy(),
        kept.contiguous().numpy(),
        limits.contiguous().numpy(),
        out.numpy(),
    )
    return out
