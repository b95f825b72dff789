"""How well the latent space of rows keeps classes apart that nothing was learnt from."""

from __future__ import annotations

import torch
from torch import Tensor


def leave_one_out_error(means: Tensor, classes: Tensor) -> float:
    """``neighbour_error``: share of the rows [B, D] of which the nearest other one is of another
    class [B].

    Source: Lawrence (2005), section 3; Titsias and Lawrence (2010), section 5."""
    distance = torch.cdist(means, means)
    distance.fill_diagonal_(torch.inf)
    nearest = distance.argmin(1).to(classes.device)
    return float((classes[nearest] != classes).double().mean())
