"""Separation in latent space of classes that were not used in training."""

from __future__ import annotations

import torch
from torch import Tensor


def leave_one_out_error(means: Tensor, classes: Tensor) -> float:
    """``neighbour_error``: share of the rows [B, D] with a nearest neighbour of a different class
    [B].

    Source: Lawrence (2005), section 3; Titsias and Lawrence (2010), section 5."""
    distance = torch.cdist(means, means)
    distance.fill_diagonal_(torch.inf)
    nearest = distance.argmin(1).to(classes.device)
    return float((classes[nearest] != classes).double().mean())
