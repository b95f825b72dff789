"""Traces: quantities that a state records row by row (draws, sampler statistics, filtered states,
rewards)."""

from __future__ import annotations

import torch
from torch import Tensor


def is_kept_step(t: int, burn_in: int, thinning: int) -> bool:
    """True if the draw of step t is kept: every ``thinning``-th one after ``burn_in`` steps."""
    return t > burn_in and (t - burn_in) % thinning == 0


class Trace:
    """Append-only rows of one shape and dtype.

    N rows are stored in one tensor, on the device of the first row.  The tensor doubles when it is
    full: N additions copy O(N) rows and use memory for at most 2 N rows (3 N while it grows), or
    for ``expected`` rows from the start.  Checkpoints rely on rows that never change: each block of
    rows is written once.  A state therefore keeps the trace objects of its initial state."""

    def __init__(self, rows: Tensor | None = None, expected: int = 1) -> None:
        # [capacity, …]; the first N are rows
        self._buffer = None if rows is None else rows.contiguous()
        self._n = 0 if rows is None else len(rows)
        self._expected = expected  # unwritten memory is not allocated by the system

    def __len__(self) -> int:
        return self._n

    def append(self, row: Tensor) -> None:
        """Append a copy of a row [...].

        Raises:
            ValueError: its shape or dtype differs from the earlier rows.
        """
        buffer = self._buffer
        n = self._n
        if buffer is None:
            buffer = self._buffer = row.new_empty(self._expected, *row.shape)
        if row.shape != buffer.shape[1:] or row.dtype != buffer.dtype:
            raise ValueError(
                f"a row {list(row.shape)} of {row.dtype} after rows {list(buffer.shape[1:])} of {buffer.dtype}"
            )
        # a checkpoint moves rows from an accelerator to the CPU
        if n == buffer.shape[0] or buffer.device != row.device:
            grown = row.new_empty(max(2 * n, 1), *row.shape)
            grown[:n] = buffer[:n]
            buffer = self._buffer = grown
        buffer[n] = row.detach() if row.requires_grad else row
        self._n = n + 1

    @property
    def rows(self) -> Tensor:
        """View of all rows [N, …].

        Raises:
            ValueError: the trace is empty and has no shape yet.
        """
        if self._buffer is None:
            raise ValueError("an empty trace has no shape")
        return self._buffer[: self._n]

    def stack_rows(self, dim: int) -> Tensor:
        """A copy of all rows, stacked along dimension ``dim`` as by ``torch.stack``."""
        return self.rows.movedim(0, dim).clone(memory_format=torch.contiguous_format)
