"""Guides and samplers in training, with initial draws of parameters and of the latent variables of
rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from components.contracts.capabilities import LatentVariable, LogJoint
from components.contracts.capabilities.modules import Trainable
from components.contracts.problems import Batch, RowBatch
from components.contracts.sequences import Series
from components.contracts.states import not_checkpointed
from components.inference.latent.draws import sample_latents
from components.inference.refined.guides import (
    PointGuide,
    StepSize,
    gaussian_entropy,
    sample_parameter_guide,
)
from components.inference.refined.path import Begun
from components.inference.variational.global_gaussian import GlobalGaussian
from components.maths.exponential.standard_draws import standard_normal
from components.maths.optimizers import Optimizer


@dataclass(kw_only=True)
class RefinementState:
    """A guide and a sampler in training."""

    module: Trainable  # q_0, with all trained parameters
    sampler: StepSize
    optimizer: Optimizer

    def begin(self, batch: RowBatch | None, n_samples: int, generator: torch.Generator) -> Begun:
        """S draws from q_0 for each posterior of the guide, [S, B, D]."""
        raise NotImplementedError


@dataclass(kw_only=True)
class ParameterRefinementState(RefinementState):
    """Refinement state for θ, with fixed noise for its draws so that scores follow the guide."""

    module: GlobalGaussian | PointGuide
    model: LogJoint = not_checkpointed()
    train: Batch | Series | None = not_checkpointed()  # None for a density
    base: Tensor  # ε [2, draws, P]
    seed: int  # seed of the kernel's noise

    def begin(self, batch: RowBatch | None, n_samples: int, generator: torch.Generator) -> Begun:
        """θ_0 [S, 1, P]."""
        assert batch is None or isinstance(batch, Batch | Series)
        P = self.base.shape[-1]
        noise = standard_normal((n_samples, 1, P), generator, self.base)
        return sample_parameter_guide(self.module, self.model, batch, noise)


@dataclass(kw_only=True)
class RowRefinementState(RefinementState):
    """Refinement state for the latent variables of rows."""

    module: LatentVariable[RowBatch]  # the generative model and its encoder

    def begin(self, batch: RowBatch | None, n_samples: int, generator: torch.Generator) -> Begun:
        """z_0 ~ q(z|x) of the encoder for every row [S, B, D]."""
        assert batch is not None
        z, _, s = sample_latents(self.module, batch, n_samples, generator)
        target = partial(self.module.log_joint, batch)
        return Begun(z, gaussian_entropy(s), target, batch.scale)
