"""Guides of rows for scores and figures: a Gaussian in place of the model's own guide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from components.contracts.capabilities import ClassConditional, Decoder, LatentVariable
from components.contracts.capabilities.latent import GuideMoments
from components.contracts.problems import RowBatch
from components.maths.exponential.standard_draws import standard_normal
from components.models.latent.generative import log_normal

Model = LatentVariable[Any]
Guide = Callable[[Model, RowBatch], GuideMoments]


class GuideView(nn.Module):
    """A generative model with another Gaussian guide, N(m(x), diag s(x)²), held fixed."""

    def __init__(self, model: Model, guide: Guide):
        super().__init__()
        self.model = model
        self.guide = guide

    @property
    def latent_dim(self) -> int:
        return self.model.latent_dim

    @torch.no_grad()
    def encode(self, batch: RowBatch) -> GuideMoments:
        return self.guide(self.model, batch)

    def log_joint(self, batch: RowBatch, z: Tensor) -> Tensor:
        return self.model.log_joint(batch, z)  # [S, B]

    @torch.no_grad()
    def sample(self, batch: RowBatch, n_samples: int, generator: torch.Generator) -> Tensor:
        m, s = self.encode(batch)
        return m + s * standard_normal((n_samples, *m.shape), generator, m)

    def log_q(self, batch: RowBatch, z: Tensor) -> Tensor:
        m, s = self.encode(batch)
        return log_normal(z, m, s)


class DecoderView(GuideView):
    """The same view for a model with a decoder."""

    def sample_latent(self, n: int, generator: torch.Generator) -> Tensor:
        assert isinstance(self.model, Decoder)
        return self.model.sample_latent(n, generator)

    def decode(self, z: Tensor) -> Tensor:
        assert isinstance(self.model, Decoder)
        return self.model.decode(z)


class ClassView(GuideView):
    """The same for a model of rows given their class."""

    model: ClassConditional

    @property
    def log_share(self) -> Tensor:
        return self.model.log_share


def prior_guide(model: Model, batch: RowBatch) -> GuideMoments:
    """The prior N(0, I) in place of a guide: initial draws are not learned."""
    m = next(iter(model.parameters())).new_zeros(batch.n_rows, model.latent_dim)
    return m, torch.ones_like(m)


def replace_guide(model: Model, guide: Guide) -> GuideView:
    """The model with another guide and the same other capabilities."""
    if isinstance(model, ClassConditional):
        return ClassView(model, guide)
    return (DecoderView if isinstance(model, Decoder) else GuideView)(model, guide)
