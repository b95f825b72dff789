"""Stocks with inflows and decay: goodwill, adstock."""

from __future__ import annotations

import torch
from torch import Tensor

from components.maths.compiled import loops
from components.series.structural.compiled import stocks as compiled


def accumulate_stock(flow: Tensor, kept: Tensor, limits: Tensor) -> Tensor:
    """s_1 = 0, s_{t+1} = (φ − κ u_t) s_t + u_t for flows u [n, k], φ [C, k] and κ [k]; [C, n, k].

    If all κ are 0, by windows of doubling length: Σ_{j<2w} φ^j u_{t−j} = Σ_{j<w} φ^j u_{t−j} + φ^w
    Σ_{j<w} φ^j u_{t−w−j}.

    Source: Gallego (2021), eq. (1.4); Vidale and Wolfe (1957), eq. (1) (κ)."""
    if loops.is_on_cpu(kept) and not kept.requires_grad:
        return compiled.accumulate_stock(flow, kept, limits)
    n = len(flow)
    if bool(limits.any()):
        grown = [torch.zeros_like(kept)]
        for u in flow[:-1]:
            grown.append((kept - limits * u) * grown[-1] + u)
        return torch.stack(grown, 1)
    s = kept.new_zeros(len(kept), n, flow.shape[1])
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


def stocks(X: Tensor, fades: Tensor, limits: Tensor, phi: Tensor) -> Tensor:
    """Columns [n, p] with the stocks among them accumulated, each with its decay φ [C, Q]; [C, n,
    p]."""
    fading = fades >= 0
    out = X.expand(len(phi), -1, -1)
    if not bool(fading.any()):
        return out
    out = out.clone()
    out[:, :, fading] = accumulate_stock(X[:, fading], phi[:, fades[fading]], limits[fading])
    return out
