"""Multi-head Bayesian network of three layers."""

from __future__ import annotations

from typing import ClassVar

from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.models.networks.dense_network import DenseNetwork
from components.models.networks.multi_task.two_likelihoods import NormalPrior
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "mbnn3")
class MBNN3(NormalPrior, Model[Supervised, DenseNetwork]):
    """mBNN3: multi-head Bayesian neural network of three layers, with a normal prior on every
    weight and bias.

    The two shared hidden layers are the first two, the heads are the third, one for each task.
    ReLU; Glorot initialisation (of the means, under inference=mean_field_vi); θ ~ N(0, s²)
    independently, s = 1 in the thesis.

    Source: Boustati (2021), section 3.5 and appendix A.1."""

    requires = Requirements(kinds=frozenset({"supervised"}))
    offers: ClassVar[frozenset[str]] = frozenset(
        {
            "network",
            "penalised",
            "weight_space",
            "affine_layers",
            "log_joint",
            "theta_predictive",
            "training_start",
            "own_inputs",
            "closed_form_score",
        }
    )
