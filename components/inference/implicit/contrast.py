"""KL(q ‖ p) of a distribution known only by draws: a discriminator against a contrast r.

r is the Gaussian with the moments of the draws, or the prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from components.contracts.checks import Check, Trace, recorded_values
from components.contracts.roles import Inference, variant_info_names
from components.maths.cholesky import LOG_2PI
from components.metrics import limits

FEWEST_VARIANCE = 1e-12  # variance of a weight that is equal in all draws


@dataclass(frozen=True)
class GaussianContrast:
    """Moments of draws θ [K, P], and the Gaussian r with these moments.

    r has independent coordinates.
    """

    mean: Tensor  # μ [P]
    centred: Tensor  # θ − μ [K, P]
    variance: Tensor  # Σ_jj [P], of these draws (divided by K)

    @cached_property
    def z_scores(self) -> Tensor:
        """θ̃_j = (θ_j − μ_j)/√Σ_jj [K, P] (below eq. 16)."""
        return self.centred * self.variance.rsqrt()

    def log_r(self) -> Tensor:
        """Mean log density K⁻¹ Σ_k log r(θ_k) = −½ Σ_j (log 2πΣ_jj + 1) [].

        This is exact, because the moments come from the same draws.
        """
        return -0.5 * (self.variance.log() + LOG_2PI + 1).sum()

    def log_prior(self, prior_std: Tensor) -> Tensor:
        """K⁻¹ Σ_k log N(θ_k | 0, diag s²) = −½ Σ_j ((μ_j² + Σ_jj)/s_j² + log 2πs_j²), []."""
        square = (self.mean.square() + self.variance) / prior_std.square()
        return -0.5 * square.sum() - (prior_std.log() + 0.5 * LOG_2PI).sum()

    def kl(self, prior_std: Tensor, log_ratio: Tensor | float) -> Tensor:
        """KL estimate E_q[T(θ̃) + log r(θ) − log p(θ)], [] (eqs. 14 to 16).

        ``log_ratio`` is the mean of T, 0 without T.
        """
        return log_ratio + self.log_r() - self.log_prior(prior_std)


@dataclass(frozen=True)
class PriorContrast:
    """The prior r = p = N(0, diag s²) as the contrast of draws θ [K, P].

    T receives θ/s, so that the prior is N(0, I).  The KL is invariant to this change of variable
    (eq. 16), and the derivative of E_q[T(θ/s)] with respect to a learned s equals the derivative of
    the KL, because E_q[∂_s log q̃_s] = 0, as for φ.
    """

    z_scores: Tensor  # θ/s [K, P]

    def kl(self, prior_std: Tensor, log_ratio: Tensor | float) -> Tensor:
        """KL estimate E_q[T(θ/s)], [] (eqs. 7 and 13): ``log_ratio``, the mean of T."""
        return self.z_scores.new_zeros(()) + log_ratio


Contrast = GaussianContrast | PriorContrast


def contrast(theta: Tensor) -> GaussianContrast:
    """Moments of draws [K, P], differentiable in the draws."""
    mean = theta.mean(0)
    centred = theta - mean
    variance = centred.square().mean(0)  # a tenth of the time of torch.var along the first axis
    return GaussianContrast(mean, centred, variance.clamp_min(FEWEST_VARIANCE))


def discrimination_loss(discriminator: nn.Module, ours: Tensor, noise: Tensor) -> Tensor:
    """−E_q[log σ(T(θ̃))] − E_r[log(1 − σ(T(θ̃)))], [] (eq. 8); 2 log 2 if the two are
    indistinguishable."""
    # one pass for both
    ours_logits, noise_logits = discriminator(torch.cat([ours, noise])).split(
        [len(ours), len(noise)]
    )
    return F.softplus(-ours_logits).mean() + F.softplus(noise_logits).mean()


def discriminator_checks(inference: Inference, trace: Trace) -> list[Check]:
    """Check that a discriminator, if there is one, still confuses its two classes.

    Uses the last tenth of the recorded values, and the replicate or variant with the least confused
    discriminator.
    """
    names = variant_info_names(["discriminator_loss"], inference)
    values = [recorded_values(trace, name) for name in names]
    if not all(values):
        return []
    losses = np.concatenate(values, 1)  # [lines, R]
    each = losses[-max(1, len(losses) // 10) :].mean(0)
    loss = float(each.min())
    suffix = f", the smallest of {len(each)} replicates" if len(each) > 1 else ""
    detail = f"loss {loss:.3g} over the last tenth{suffix}, chance is {2 * math.log(2):.3g}"
    saturated = loss < limits.DISCRIMINATOR_LOSS
    if saturated:
        detail += "; its KL is not a valid estimate, compare inference.discriminator=none"
    name = f"the discriminator's loss is above {limits.DISCRIMINATOR_LOSS:g}"
    return [Check(name, not saturated, detail)]
