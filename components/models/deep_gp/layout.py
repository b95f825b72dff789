"""Layout of partly missing labels [B, T] as padded rows per task."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


class _GatherRows(torch.autograd.Function):
    """g [S, B, P] -> [S, T, n, P]; the backward pass also gathers (without atomics, bit for bit
    equal on every device)."""

    @staticmethod
    def forward(ctx, g: Tensor, rows: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return g[:, rows]

    @staticmethod
    def backward(ctx, gradient: Tensor):
        (inverse,) = ctx.saved_tensors  # [B, K] indices among T·n, T·n itself for none
        S, T, n, P = gradient.shape
        padded = torch.cat([gradient.reshape(S, T * n, P), gradient.new_zeros(S, 1, P)], 1)
        return padded[:, inverse].sum(2), None, None


@dataclass(frozen=True)
class Layout:
    """Rows of each task, padded to the longest.

    The cost depends on the number of observed labels, not on B · T.
    """

    n_tasks: int
    n_rows: int  # n: the largest number of rows of a task
    rows: Tensor | None  # [T, n] rows of the batch; None means all rows for every task, in order
    # [B, K] indices (t · n + position) of each row, padded with T · n; None means autograd's own
    # backward
    inverse: Tensor | None
    weight: Tensor | None  # [T, n] 1 for labels, 0 for padding; None means all 1

    @classmethod
    def full(cls, n_tasks: int, n_rows: int) -> Layout:
        return cls(n_tasks, n_rows, None, None, None)

    @classmethod
    def of(cls, mask: Tensor, dtype: torch.dtype) -> Layout:
        """The layout of mask [B, T]."""
        B, T = mask.shape
        if bool(mask.all()):
            return cls.full(T, B)
        counts = mask.sum(0)
        n = max(int(counts.max()), 1)
        K = max(int(mask.sum(1).max()), 1)
        b, t = mask.nonzero(as_tuple=True)
        position = (mask.cumsum(0) - 1)[b, t]
        label = (mask.cumsum(1) - 1)[b, t]
        rows = torch.zeros(T, n, dtype=torch.long, device=mask.device)
        rows[t, position] = b
        inverse = torch.full((B, K), T * n, dtype=torch.long, device=mask.device)
        inverse[b, label] = t * n + position
        weight = (torch.arange(n, device=mask.device) < counts[:, None]).to(dtype)
        return cls(T, n, rows, inverse, weight)

    def gather(self, g: Tensor) -> Tensor:
        """[S, B, P] -> [S, T, n, P]."""
        if self.rows is None:
            return g.unsqueeze(1).expand(-1, self.n_tasks, -1, -1)
        return (
            g[:, self.rows]
            if self.inverse is None
            else _GatherRows.apply(g, self.rows, self.inverse)
        )

    def labels(self, y: Tensor) -> Tensor:
        """Labels [B, T] -> [T, n], with 0 in the padding.

        The 0 replaces the value of a missing label (NaN would contaminate gradients).
        """
        if self.rows is None or self.weight is None:
            return y.T
        return torch.where(
            self.weight > 0,
            y.T.gather(1, self.rows),
            torch.zeros((), dtype=y.dtype, device=y.device),
        )
