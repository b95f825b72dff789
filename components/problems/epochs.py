"""Which rows each step is shown, whatever the rows hold."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from components.contracts.streams import Rng


def minibatches(n: int, size: int | None, rng: Rng, start: int, stop: int) -> Iterator[tuple[int, Tensor | None]]:
    """Steps start+1 … stop with numbers of ``size`` of n rows, or None where all are shown, in their own order.

    Each epoch is a fresh permutation, a pure function of (seed, epoch): a run that was stopped goes on with the very
    batches it would have seen.  The last rows of an epoch that do not fill a batch are left to the next one."""
    if size is None or size >= n:
        for step in range(start + 1, stop + 1):
            yield step, None
        return
    per_epoch, order, epoch = n // size, torch.empty(0), -1
    for step in range(start + 1, stop + 1):
        now, position = divmod(step - 1, per_epoch)
        if now != epoch:
            generator = rng.at("batches", now)
            order, epoch = torch.randperm(n, generator=generator, device=generator.device), now
        yield step, order[position * size : (position + 1) * size]
