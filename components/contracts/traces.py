"""Traces: what a state gains row by row (draws, what a sampler says of them, filtered states,
rewards)."""

from __future__ import annotations

import torch
from torch import Tensor


class Trace:
    """Rows of one shape and type, added at the end, one at a time, and never changed or taken away.

    N rows lie in one tensor, where the first of them lay, which doubles when it is full: N
    additions copy O(N), and take room for at most 2 N rows (3 N while it grows), or from the first
    for as many as are ``expected``.  A checkpoint counts on rows that never change: those that it
    has written once, in blocks, it does not write again.  A state therefore keeps the traces that
    it began with."""

    def __init__(self, rows: Tensor | None = None, expected: int = 1) -> None:
        # [room, …], where the first N are rows
        self._room = None if rows is None else rows.contiguous()
        self._n = 0 if rows is None else len(rows)
        self._expected = expected  # memory that was never written to costs nothing

    def __len__(self) -> int:
        return self._n

    def append(self, row: Tensor) -> None:
        """Adds a copy of a row [...].

        Raises:
            ValueError: it has not the shape and type of those before.
        """
        room = self._room
        n = self._n
        if room is None:
            room = self._room = row.new_empty(self._expected, *row.shape)
        if row.shape != room.shape[1:] or row.dtype != room.dtype:
            raise ValueError(
                f"a row {list(row.shape)} of {row.dtype} after rows {list(room.shape[1:])} of {room.dtype}"
            )
        # a checkpoint brings rows of an accelerator to the CPU
        if n == room.shape[0] or room.device != row.device:
            grown = row.new_empty(max(2 * n, 1), *row.shape)
            grown[:n] = room[:n]
            room = self._room = grown
        room[n] = row.detach() if row.requires_grad else row
        self._n = n + 1

    @property
    def rows(self) -> Tensor:
        """All rows [N, …], a view.

        Raises:
            ValueError: there are no rows, and so there is no shape.
        """
        if self._room is None:
            raise ValueError("a trace without a row has no shape")
        return self._room[: self._n]

    def stack_rows(self, dim: int) -> Tensor:
        """A copy of all rows with their number as dimension ``dim``, what ``torch.stack`` makes of
        a list of them."""
        return self.rows.movedim(0, dim).clone(memory_format=torch.contiguous_format)
