"""The guide of rows after refinement, as scores and figures see it: a Gaussian around a refined
mean."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.capabilities import Decoder, LatentVariable
from components.contracts.problems import RowBatch
from components.inference.latent.views import DecoderView, GuideView
from components.inference.refined.kernels import slope


class RefinedGuide(GuideView):
    """Guide q(z|x) = N(m_T(x), diag s(x)²) with a mean refined by T gradient steps.

    m_t = m_{t−1} + η ∇_z log p(x, m_{t−1}),  with m_0 and s from the encoder.  q depends
    only on x, so that it has a density and the weights p(x, z)/q(z|x) of its draws are
    unbiased for p(x).
    """

    def __init__(self, model: LatentVariable[RowBatch], eta: Tensor, steps: int):
        super().__init__(model)
        self.eta = eta
        self.steps = steps

    @torch.no_grad()
    def encode(self, batch: RowBatch) -> tuple[Tensor, Tensor]:
        m, s = self.model.encode(batch)
        z = m[None]
        for _ in range(self.steps):
            z = z + self.eta * slope(lambda at: self.model.log_joint(batch, at), z, False)
        return z[0], s


class RefinedDecoder(DecoderView, RefinedGuide):
    """The same of a model that can be seen from its latent variables."""


def refined_guide(
    model: LatentVariable[RowBatch], eta: Tensor, steps: int
) -> LatentVariable[RowBatch]:
    """The guide of the model as it is (T = 0), or refined."""
    if steps == 0:
        return model
    return (RefinedDecoder if isinstance(model, Decoder) else RefinedGuide)(model, eta, steps)
