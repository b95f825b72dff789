"""Standardised filter residuals of a series and of further columns."""

from __future__ import annotations

import torch
from torch import Tensor

from components.maths.conditionals.exact_root import root
from components.maths.series.simulation_smoother import StateLayout, in_order


def whiten_columns(
    layout: StateLayout, beside: Tensor, G: Tensor, scale: Tensor, noise: Tensor
) -> Tensor:
    """Filter residuals (Y − F A)/√f of columns Y [C, n, q]; [C, n, q].

    The last column is y and has the states' mean; the other columns have mean zero.

        V = Y − F A,  f = F P Fᵀ + h,  K = P Fᵀ/f,
        A ← G(A + K V),  P ← G(P − K f Kᵀ)Gᵀ + W           t = 1 … n

    The result is 0 at unobserved times. The filter is linear: if y = Xβ + states + noise,
    the residual of y is the residual of X times β plus white noise, which gives p(y | β)
    with the states summed out. h = noise² [C, n], W = scale² [C, k] of the noisy states.

    Source: Durbin and Koopman (2012), section 6.2.3.
    """
    F = layout.F
    values = layout.rows.numbers(G)
    noisy = list(layout.noisy)
    C, n, q = beside.shape
    columns = (F != 0).any(0).nonzero().flatten().tolist()
    A = torch.cat(
        [layout.mean.new_zeros(len(layout.mean), q - 1), layout.mean.unsqueeze(1)], 1
    ).expand(C, -1, -1)
    P = (layout.sd * layout.sd).diag().expand(C, F.shape[1], F.shape[1])
    out = torch.zeros_like(beside)
    for t in range(n):
        if bool(layout.seen[t]):
            row = F[t, columns]
            V = beside[:, t] - in_order(A[:, columns].mT * row)  # [C, q]
            M = in_order(P[:, :, columns] * row)  # P Fᵀ [C, d]
            f = in_order(row * M[:, columns]) + noise[:, t] * noise[:, t]
            out[:, t] = V / root(f).unsqueeze(1)
            A = A + (M / f.unsqueeze(1)).unsqueeze(2) * V.unsqueeze(1)
            P = P - M.unsqueeze(2) * M.unsqueeze(1) / f[:, None, None]
        A = layout.rows.times(values, A)
        P = layout.rows.times(values, layout.rows.times(values, P).mT).tril()
        P = P + P.tril(-1).mT
        if noisy:
            P[:, noisy, noisy] = P[:, noisy, noisy] + scale * scale
    return out
