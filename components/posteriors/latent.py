"""Posteriors of the latent variables of rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import LogRatio
from components.contracts.problems import RowBatch


@dataclass(frozen=True)
class LatentPosterior:
    """q(z|x) of a trained model p(x, z), as used by figures."""

    module: LogRatio[RowBatch]

    def row_log_weights(
        self, batch: RowBatch, n_samples: int, generator: torch.Generator
    ) -> Tensor:
        """log p(x, z_s) − log q(z_s|x) for z_s ~ q(z|x), [S, B]: their mean is the evidence lower
        bound of a row.

        Source: Burda, Grosse and Salakhutdinov (2016), eq. (8)."""
        z = self.module.sample(batch, n_samples, generator)
        return self.module.log_joint(batch, z) - self.module.log_q(batch, z)  # [S, B]
