"""Classes of rows by Bayes' rule, with refined latent variables."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import LatentVariable
from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.metrics.evidence.held_out import Proposal
from components.models.latent.cvae import class_predictive
from components.posteriors.redraws import DrawsByNumber


@dataclass(frozen=True)
class ClassPosterior(DrawsByNumber):
    """Class posterior p(y|x) ∝ p(y) p̂(x|y), p̂ by importance sampling within each class.

    The proposal has a known density.

    Source: Gallego (2021), section 2.4.2 (Variational autoencoder as a deep Bayes
    classifier).
    """

    guide: LatentVariable[Batch]  # q(z|x, y), refined or not
    log_share: Tensor  # log p(y) [C]
    proposal: Proposal

    def predict(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """p(y*|x*) at x [B, …] from one set of importance samples, so that S = 1."""
        return class_predictive(
            self.guide, self.log_share, x, self.n_predict, generator, self.proposal
        )
