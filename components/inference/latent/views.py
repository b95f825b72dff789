"""Guides of rows as scores and figures see them: a Gaussian in place of the model's own guide."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from components.contracts.capabilities import ClassConditional, Decoder, LatentVariable
from components.contracts.problems import RowBatch
from components.maths.exponential.standard_draws import standard_normal
from components.models.latent.generative import log_normal


class GuideView(nn.Module):
    """A generative model with another Gaussian guide, N(m(x), diag s(x)²) of ``encode``."""

    def __init__(self, model: LatentVariable[RowBatch]):
        super().__init__()
        self.model = model

    @property
    def latent_dim(self) -> int:
        return self.model.latent_dim

    def encode(self, batch: RowBatch) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

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
    """The same of a model that can be seen from its latent variables."""

    def sample_latent(self, n: int, generator: torch.Generator) -> Tensor:
        assert isinstance(self.model, Decoder)
        return self.model.sample_latent(n, generator)

    def decode(self, z: Tensor) -> Tensor:
        assert isinstance(self.model, Decoder)
        return self.model.decode(z)


class PriorGuide(GuideView):
    """The prior N(0, I) in place of a guide: nothing is learnt of where draws begin."""

    @torch.no_grad()
    def encode(self, batch: RowBatch) -> tuple[Tensor, Tensor]:
        like = next(iter(self.model.parameters()))
        m = like.new_zeros(batch.n_rows, self.latent_dim)
        return m, torch.ones_like(m)


class PriorDecoder(DecoderView, PriorGuide):
    """The same of a model that can be seen from its latent variables."""


class PriorOfClasses(PriorGuide):
    """The same of a model of rows given their class."""

    @property
    def log_share(self) -> Tensor:
        assert isinstance(self.model, ClassConditional)
        return self.model.log_share


def replace_guide(model: LatentVariable[RowBatch]) -> PriorGuide:
    """The model with its prior for a guide."""
    kind: type[PriorGuide] = PriorDecoder if isinstance(model, Decoder) else PriorGuide
    return (PriorOfClasses if isinstance(model, ClassConditional) else kind)(model)
