"""Square roots rounded to the nearest number, as compiled loops have them; torch's on a CPU are
not."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def root(x: Tensor) -> Tensor:
    """√x, elementwise."""
    return torch.from_numpy(np.sqrt(x.numpy())) if x.device.type == "cpu" else x.sqrt()
