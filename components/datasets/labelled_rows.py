"""Batch of labelled rows on the device of a run."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.problems import Batch
from components.contracts.roles import Setting


def labelled_rows(x: Tensor, y: Tensor, setting: Setting, mask: Tensor | None = None) -> Batch:
    """Inputs x [B, D] and labels y [B, T]; inputs and real labels have the dtype of the run.

    ``mask`` [B, T] marks observed labels; None for all.
    """
    dtype = setting.dtype if y.is_floating_point() else y.dtype
    mask = torch.ones_like(y, dtype=torch.bool) if mask is None else mask
    return Batch(
        setting.place(x),
        y.to(setting.device, dtype),
        mask.to(setting.device),
        1.0,
    )
