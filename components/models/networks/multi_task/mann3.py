"""Multi-head network of three layers with dropout."""

from __future__ import annotations

from components.models.networks.multi_task.two_likelihoods import DropoutNetworkSettings
from components.registry import register


@register("model", "mann3")
class MANN3(DropoutNetworkSettings):
    """mANN3: multi-head feed-forward network of three layers, with dropout and L2 penalty.

    The first two layers are shared, and the third consists of one head per task.  Activations are
    ReLUs, and initialisation is Glorot's; L2 adds λ Σ θ² to the mean over rows of −log p(y|x, θ),
    which equals a prior θ ~ N(0, 1/(2λN)). inference=mc_dropout provides the uncertainty.

    Source: Boustati (2021), section 3.5 and appendix A.1.
    """
