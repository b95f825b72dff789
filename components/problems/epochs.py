"""Choice of the rows shown at each step and of the held-out rows, for any content."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from components.contracts.streams import Rng
from components.errors import ConfigMismatchError

HELD_OUT = 1  # the stream of random numbers that selects the held-out training rows


def minibatches(
    n: int, size: int | None, rng: Rng, start: int, stop: int
) -> Iterator[tuple[int, Tensor | None]]:
    """Steps start+1 … stop with numbers of ``size`` of n rows, or None where all are shown, in
    their own order.

    Each epoch is a fresh permutation, a pure function of (seed, epoch): a run that was stopped goes
    on with the very batches it would have seen.  The last rows of an epoch that do not fill a batch
    are left to the next one."""
    if size is None or size >= n:
        for step in range(start + 1, stop + 1):
            yield step, None
        return
    per_epoch = n // size
    order = torch.empty(0)
    epoch = -1
    for step in range(start + 1, stop + 1):
        now, position = divmod(step - 1, per_epoch)
        if now != epoch:
            generator = rng.at("batches", now)
            order = torch.randperm(n, generator=generator, device=generator.device)
            epoch = now
        yield step, order[position * size : (position + 1) * size]


def describe_batches(n: int, size: int | None) -> str:
    """Batches of n rows, in words."""
    return "whole" if size is None else f"{size} ({math.ceil(n / size)} an epoch)"


def put_aside(n: int, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows that are kept to learn from and a random ``share`` of n, at least one, that is held out;
    both rising.

    Raises:
        ConfigMismatchError: no row would be left to learn from."""
    n_held_out = max(1, round(share * n))
    if n_held_out == n:
        raise ConfigMismatchError(
            f"validation={share}: leaves none of {n} training rows to learn from; lower it"
        )
    order = torch.randperm(n, generator=generator)
    return order[n_held_out:].sort()[0], order[:n_held_out].sort()[0]
