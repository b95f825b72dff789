"""Multi-head Bayesian network of two layers."""

from __future__ import annotations

from components.models.networks.multi_task.two_likelihoods import NormalPrior
from components.registry import register


@register("model", "mbnn2")
class MBNN2(NormalPrior):
    """mBNN2: multi-head Bayesian neural network of two layers, with a normal prior on every weight
    and bias.

    The first layer is shared, and the second consists of one head per task.  Activations are ReLUs,
    and initialisation is Glorot's (of the means for inference=mean_field_vi); θ ~ N(0, s²)
    independently, s = 1 in the thesis.

    Source: Boustati (2021), section 3.5 and appendix A.1."""
