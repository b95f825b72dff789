"""Draws of the latent variables of rows as functions of the guide."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.capabilities import LatentVariable
from components.contracts.problems import RowBatch
from components.inference.chains import standard_normal


def sample_latents(
    module: LatentVariable[RowBatch], batch: RowBatch, n_samples: int, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """z = m + s ε of ε ~ N(0, I) [S, B, D], with m and s [B, D]; differentiable in the guide."""
    m, s = module.encode(batch)
    return m + s * standard_normal((n_samples, *m.shape), generator, m), m, s
