"""Multi-head Bayesian network of three layers."""

from __future__ import annotations

from components.models.networks.multi_task.two_likelihoods import NormalPrior
from components.registry import register


@register("model", "mbnn3")
class MBNN3(NormalPrior):
    """mBNN3: multi-head Bayesian neural network of three layers, with a normal prior on every
    weight and bias.

    The first two layers are shared, and the third consists of one head per task.  Activations are
    ReLUs, and initialisation is Glorot's (of the means for inference=mean_field_vi); θ ~ N(0, s²)
    independently, s = 1 in the thesis.

    Source: Boustati (2021), section 3.5 and appendix A.1."""
