"""Multi-head network of two layers with dropout."""

from __future__ import annotations

from typing import ClassVar

from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.models.networks.dense_network import DenseNetwork
from components.models.networks.multi_task.two_likelihoods import DropoutNetworkSettings
from components.problems.supervised import Supervised
from components.registry import register


@register("model", "mann2")
class MANN2(DropoutNetworkSettings, Model[Supervised, DenseNetwork]):
    """mANN2: multi-head feed-forward network of two layers, with dropout and L2 penalty.

    The shared hidden layer is the first, the heads are the second, one for each task. ReLU;
    Glorot initialisation; L2 adds λ Σ θ² to the mean over rows of −log p(y|x, θ), which
    equals a prior θ ~ N(0, 1/(2λN)). The uncertainty comes from
    inference=mc_dropout.

    Source: Boustati (2021), section 3.5 and appendix A.1.
    """

    requires = Requirements(kinds=frozenset({"supervised"}))
    offers: ClassVar[frozenset[str]] = frozenset(
        {"network", "penalised", "weight_space", "affine_layers"}
    )
    offers_where: ClassVar[dict[str, str]] = {"dropout": "dropout above 0"}

    def capabilities(self) -> frozenset[str]:
        return self.offers | (self.offers_where.keys() if self.dropout else set())
