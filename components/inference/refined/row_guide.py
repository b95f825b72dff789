"""The refined guide of rows for scores and figures: a Gaussian around a refined mean."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from components.contracts.capabilities import LatentVariable
from components.contracts.problems import RowBatch
from components.inference.latent.views import replace_guide
from components.inference.refined.kernels import slope


def refine_mean(
    model: LatentVariable[RowBatch], batch: RowBatch, eta: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """Guide q(z|x) = N(m_T(x), diag s(x)²) with a mean refined by T gradient steps.

    m_t = m_{t−1} + η ∇_z log p(x, m_{t−1}),  with m_0 and s from the encoder.  q depends only on x,
    so that it has a density, and the weights p(x, z)/q(z|x) of its draws are unbiased for p(x).
    """
    m, s = model.encode(batch)
    z = m[None]
    for _ in range(steps):
        z = z + eta * slope(lambda at: model.log_joint(batch, at), z, False)
    return z[0], s


def refined_guide(
    model: LatentVariable[RowBatch], eta: Tensor, steps: int
) -> LatentVariable[RowBatch]:
    """The guide of the model, refined if T > 0."""
    return replace_guide(model, partial(refine_mean, eta=eta, steps=steps)) if steps else model
