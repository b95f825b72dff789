"""Draws of the states of a linear Gaussian series given its observations, for C systems.

    α_1 ~ N(m, diag s²),   α_{t+1} = G α_t + N(0, diag w),
    y_t = F_t α_t + N(0, h_t),   t = 1 … n, one number y_t

Every sum is computed in one order, so that a compiled loop
(``maths.compiled.simulation_smoother``) has the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sparse:
    """Nonzero pattern of a matrix [d, d].

    Row i has the columns ``columns[start[i]:start[i + 1]]``.
    """

    start: tuple[int, ...]
    columns: tuple[int, ...]

    @classmethod
    def of(cls, there: Tensor) -> Sparse:
        """Build from a pattern [d, d] bool."""
        rows = [row.nonzero().flatten().tolist() for row in there]
        ends = torch.tensor([0, *map(len, rows)]).cumsum(0).tolist()
        return cls(tuple(ends), tuple(j for row in rows for j in row))

    def numbers(self, G: Tensor) -> Tensor:
        """Entries [C, nnz] of a matrix [C, d, d] at the positions of the pattern."""
        rows = [
            i for i in range(len(self.start) - 1) for _ in range(self.start[i], self.start[i + 1])
        ]
        return G[:, rows, list(self.columns)]

    def times(self, values: Tensor, x: Tensor) -> Tensor:
        """G x [C, d, …] of x [C, d, …]; a row's products are added from left to right."""
        out = torch.zeros_like(x)
        one = [i for i in range(len(self.start) - 1) if self.start[i + 1] - self.start[i] == 1]
        tail = (1,) * (x.dim() - 2)
        if one:
            places = [self.start[i] for i in one]
            out[:, one] = (
                values[:, places].reshape(len(x), -1, *tail)
                * x[:, [self.columns[k] for k in places]]
            )
        for i in range(len(self.start) - 1):
            a = self.start[i]
            b = self.start[i + 1]
            if b - a > 1:
                products = values[:, a:b].reshape(len(x), -1, *tail) * x[:, list(self.columns[a:b])]
                out[:, i] = products.cumsum(1)[:, -1]
        return out


def in_order(x: Tensor) -> Tensor:
    """The sum over the last dimension, from its first number on."""
    return x.cumsum(-1)[..., -1] if x.shape[-1] else x.sum(-1)


@dataclass(frozen=True)
class StateLayout:
    """Parts of the system that are the same in all draws."""

    seen: Tensor  # [n] bool
    F: Tensor  # [n, d]
    mean: Tensor  # m [d]
    sd: Tensor  # s [d]
    rows: Sparse  # of G
    noisy: tuple[int, ...]  # states with noise


@dataclass(frozen=True)
class StateRandomNumbers:
    """Standard normal numbers: of the first state, of the noise of states and of the
    observations."""

    first: Tensor  # [C, d]
    states: Tensor  # [C, n − 1, k]
    observations: Tensor  # [C, n]


def simulate_states(
    layout: StateLayout,
    y: Tensor,
    G: Tensor,
    scale: Tensor,
    noise: Tensor,
    numbers: StateRandomNumbers,
) -> tuple[Tensor, Tensor]:
    """States α ~ p(α_1, …, α_n | y) [C, n, d], and their noise α_{t+1} − G α_t where there is any
    [C, n − 1, k].

    y [C, n]; w = scale² [C, k] of the noisy states, h = noise² [C, n].  States and observations are
    drawn from the model without its mean; to the states is added what their smoother says of y less
    those observations:

        v = y − F a,  f = F P Fᵀ + h,  K = P Fᵀ/f,  a ← G(a + K v),  P ← G(P − K f Kᵀ)Gᵀ + W           t = 1 … n
        q = Gᵀ r,  r ← q + Fᵀ(v/f − K q)                                                               t = n … 1
        α_1 = α⁺_1 + m + diag s² r_0,  α_{t+1} = G α_t + η⁺_t + W r_t

    Source: Durbin & Koopman (2002); Koopman (1993); Jarociński (2015), of the mean that is left
    out."""
    F = layout.F
    values = layout.rows.numbers(G)
    noisy = list(layout.noisy)
    n, d = F.shape
    C = len(y)
    if d == 0:
        return y.new_zeros(C, n, 0), y.new_zeros(C, n - 1, 0)
    back = Sparse.of(_sparsity_pattern(layout.rows).T)
    values_back = back.numbers(G.mT)
    columns = (F != 0).any(0).nonzero().flatten().tolist()
    w = scale * scale
    h = noise * noise
    shocks = scale.unsqueeze(1) * numbers.states  # η⁺ [C, n − 1, k]
    errors = noise * numbers.observations
    plus = layout.sd * numbers.first
    a = layout.mean.expand(C, d)
    P = (layout.sd * layout.sd).diag().expand(C, d, d)
    gains = []
    scaled = []
    for t in range(n):
        row = F[t, columns]
        if bool(layout.seen[t]):
            v = (
                y[:, t]
                - in_order(row * plus[:, columns])
                - errors[:, t]
                - in_order(row * a[:, columns])
            )
            M = in_order(P[:, :, columns] * row)  # P Fᵀ [C, d]
            f = in_order(row * M[:, columns]) + h[:, t]
            a = a + M / f.unsqueeze(1) * v.unsqueeze(1)
            P = P - M.unsqueeze(2) * M.unsqueeze(1) / f[:, None, None]
            gains.append(M / f.unsqueeze(1))
            scaled.append(v / f)
        else:
            gains.append(torch.zeros_like(a))
            scaled.append(torch.zeros_like(h[:, t]))
        if t == n - 1:
            break
        a = layout.rows.times(values, a)
        P = layout.rows.times(values, layout.rows.times(values, P).mT).tril()
        P = P + P.tril(-1).mT
        plus = layout.rows.times(values, plus)
        if noisy:
            P[:, noisy, noisy] = P[:, noisy, noisy] + w
            plus[:, noisy] = plus[:, noisy] + shocks[:, t]
    r = torch.zeros_like(a)
    pulls = []
    for t in range(n - 1, -1, -1):
        if t < n - 1:
            pulls.append(r[:, noisy])
            r = back.times(values_back, r)
        if bool(layout.seen[t]):
            s = scaled[t] - in_order(gains[t] * r)
            r = r.clone()
            r[:, columns] = r[:, columns] + F[t, columns] * s.unsqueeze(1)
    state = layout.mean + layout.sd * numbers.first + layout.sd * layout.sd * r
    eta = shocks + w.unsqueeze(1) * torch.stack(pulls[::-1], 1) if pulls else shocks
    states = [state]
    for t in range(n - 1):
        state = layout.rows.times(values, state)
        if noisy:
            state[:, noisy] = state[:, noisy] + eta[:, t]
        states.append(state)
    return torch.stack(states, 1), eta


def driven(layout: StateLayout, G: Tensor, noise: Tensor) -> Tensor:
    """Response of the states to their noise [C, n − 1, d] only.

    D_1 = 0, D_{t+1} = G D_t + noise_t [C, n, d].
    """
    values = layout.rows.numbers(G)
    state = torch.zeros_like(noise[:, 0])
    states = [state]
    for step in noise.unbind(1):
        state = layout.rows.times(values, state) + step
        states.append(state)
    return torch.stack(states, 1)


def _sparsity_pattern(rows: Sparse) -> Tensor:
    d = len(rows.start) - 1
    pattern = torch.zeros(d, d, dtype=torch.bool)
    for i in range(d):
        pattern[i, list(rows.columns[rows.start[i] : rows.start[i + 1]])] = True
    return pattern
