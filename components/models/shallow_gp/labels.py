"""Observed labels arranged for batched Gaussian processes: one padded group per task, or one
group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.models.deep_gp.layout import Layout

if TYPE_CHECKING:
    from components.contracts.problems import Batch


@dataclass(frozen=True)
class Labels:
    """Labels y of f_task(x) in G groups of at most n; padded entries are outside the mask and have
    y = 0."""

    x: Tensor  # [G, n, D]
    y: Tensor  # [G, n]
    task: Tensor  # [G, n] long
    mask: Tensor  # [G, n] bool

    @property
    def count(self) -> Tensor:
        """Number of labels in each group, [G]."""
        return self.mask.sum(-1)

    @property
    def total(self) -> int:
        """Number of labels in all groups."""
        return int(self.mask.sum())

    def together(self) -> Labels:
        """The observed labels in one group, without padding: [1, N]."""
        return Labels(
            self.x[self.mask][None],
            self.y[self.mask][None],
            self.task[self.mask][None],
            self.mask[self.mask][None],
        )

    def take(self, places: Tensor) -> Labels:
        """The labels at some indices of the only group: [1, len(places)]."""
        x, y, task, mask = (part[:, places] for part in (self.x, self.y, self.task, self.mask))
        return Labels(x, y, task, mask)


def group_by_task(batch: Batch) -> Labels:
    """One group for each task, padded to the longest: G = T."""
    layout = Layout.of(batch.mask, batch.x.dtype)
    T = layout.n_tasks
    n = layout.n_rows
    x = batch.x.expand(T, -1, -1) if layout.rows is None else batch.x[layout.rows]  # [T, n, D]
    mask = (
        torch.ones_like(x[..., 0], dtype=torch.bool) if layout.weight is None else layout.weight > 0
    )
    y = layout.labels(batch.y)
    # Missing labels may have any value, including NaN, which multiplication by 0 would not remove.
    y = torch.where(mask, y, torch.zeros_like(y))
    task = torch.arange(T, device=x.device)[:, None].expand(T, n)
    return Labels(x, y, task, mask)


def pair_with_tasks(x: Tensor, n_tasks: int) -> tuple[Tensor, Tensor]:
    """The points (x, t) for every row of x [B, D] and every task, to be broadcast: x [1, B, D],
    task [T, 1]."""
    return x[None], torch.arange(n_tasks, device=x.device)[:, None]
