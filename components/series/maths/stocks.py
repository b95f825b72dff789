"""Stocks that flow in and fade: goodwill, adstock."""

from __future__ import annotations

import torch
from torch import Tensor

from components.maths.compiled import loops
from components.series.fast import stocks as compiled


def accumulate_stock(flow: Tensor, kept: Tensor) -> Tensor:
    """s_1 = 0, s_{t+1} = φ s_t + u_t of flows u [n, k] and φ [C, k]; [C, n, k].

    Windows that double: Σ_{j<2w} φ^j u_{t−j} = Σ_{j<w} φ^j u_{t−j} + φ^w Σ_{j<w} φ^j u_{t−w−j}.

    Source: Gallego (2021), eq. (1.4)."""
    if loops.is_on_cpu(kept) and not kept.requires_grad:
        return compiled.accumulate_stock(flow, kept)
    n = len(flow)
    s = torch.zeros(len(kept), n, flow.shape[1], dtype=kept.dtype, device=kept.device)
    s[:, 1:] = flow[:-1]
    width = 1
    power = kept.unsqueeze(1)
    while width < n:
        wider = s.clone()
        wider[:, width:] += power * s[:, :-width]
        s = wider
        power = power * power
        width = 2 * width
    return s


def stocks(X: Tensor, fades: Tensor, phi: Tensor) -> Tensor:
    """Columns [n, p] with those that are stocks grown, each by the φ [C, Q] that it fades with; [C,
    n, p]."""
    fading = fades >= 0
    out = X.expand(len(phi), -1, -1)
    if not bool(fading.any()):
        return out
    out = out.clone()
    out[:, :, fading] = accumulate_stock(X[:, fading], phi[:, fades[fading]])
    return out
