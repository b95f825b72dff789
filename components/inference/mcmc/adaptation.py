"""Adaptation of samplers in warm-up: pooled target moments, and a step size per chain.

The moments come from all chains together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from pydantic import BaseModel, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat
from torch import Tensor

from components.contracts.roles import BetweenZeroAndOne, ZeroToBelowOne
from components.errors import NumericalError

Moments = dict[str, Tensor]  # mean [P], covariance [P, P] (dense) or [P] (its diagonal)


@dataclass(frozen=True)
class Proposal:
    """Proposal learned in warm-up; ``moments`` and ``factor`` are None if its shape stays I.

    If R replicates have their own targets, each has its own proposal: [R, …] each.
    """

    log_step: Tensor  # log ε [C]
    moments: Moments | None
    factor: Tensor | None  # L [P, P], or [P] (its diagonal; only for one target)


class AdaptedProposal(BaseModel):
    """Keys of samplers with proposals learned in warm-up.

    A proposal has a shape Σ = L Lᵀ and a step size ε for each chain.  A step size shared by
    all chains would follow the acceptance of most of them, and a chain that starts where
    only small steps are accepted would stay there forever.  Σ stays I in the first part of the
    warm-up: from a distant start all chains approach along one curve, and Σ would learn only the
    direction of that curve and lead the chains out of the target.  After warm-up nothing is
    adapted, so the stored states of a chain come from a fixed Markov kernel.
    """

    step_size: PositiveFloat
    warmup: NonNegativeInt
    # Σ in warm-up: identity (not learned) | diagonal | dense (a P × P Cholesky factor per step)
    covariance: Literal["identity", "diagonal", "dense"]
    adapt_step_size: bool
    target_acceptance: BetweenZeroAndOne
    gain: PositiveFloat
    # κ in (0.5, 1]; Andrieu and Thoms (2008), Algorithm 4
    decay: Annotated[float, Field(gt=0.5, le=1)]
    # fraction of the warm-up with Σ = I, in [0, 1); t₀ of Haario et al. (2001), section 2
    covariance_delay: ZeroToBelowOne
    forgetting: NonNegativeFloat
    regularisation: PositiveFloat

    def init_proposal(self, theta: Tensor) -> Proposal:
        """The proposal before the first step from θ [C, P], or [R, C, P]: Σ = I and log ε [C], or
        [R, C]."""
        ones = torch.ones(theta.shape[-1], dtype=theta.dtype, device=theta.device)
        unit = (
            None
            if self.covariance == "identity"
            else ones
            if self.covariance == "diagonal"
            else ones.diag()
        )
        moments = None if unit is None else {"mean": theta.mean(-2), "covariance": unit}
        return Proposal(theta.new_full(theta.shape[:-1], math.log(self.step_size)), moments, unit)

    def update_proposal(self, proposal: Proposal, theta: Tensor, t: int, alpha: Tensor) -> Proposal:
        """The proposal after step t, which led to θ [C, P] with acceptance α [C]; unchanged after
        warm-up."""
        log_step = proposal.log_step
        moments = proposal.moments
        L = proposal.factor
        if t <= self.warmup:
            late = t - int(self.covariance_delay * self.warmup)
            if moments is not None and late <= 0:
                moments = moments | {"mean": theta.mean(-2)}
            elif moments is not None:
                moments = updated_moments(moments, theta, late, self.forgetting)
                L = factor(moments["covariance"], self.regularisation)
            if self.adapt_step_size:
                log_step = robbins_monro(
                    log_step, alpha, self.target_acceptance, self.gain * t**-self.decay
                )
        return replace(proposal, log_step=log_step, moments=moments, factor=L)


def updated_moments(moments: Moments, theta: Tensor, t: int, forgetting: float) -> Moments:
    """Moments updated with the states θ [C, P] of step t = 1, 2, … at weight w = (1 + η)/(t + 1 +
    η).

        μ ← μ + w (θ̄ − μ),   Σ ← (1 − w) Σ + w S + w (1 − w)(θ̄ − μ)(θ̄ − μ)ᵀ,   S the covariance of the chains about θ̄

    η = 0 weights all states equally, as in Haario et al.; with larger η the initial phase is
    forgotten sooner.

    Source: Andrieu and Thoms (2008), Algorithm 4, with the weights of Haario et al. (2001) for η =
    0."""
    mean = moments["mean"]
    covariance = moments["covariance"]
    w = (1 + forgetting) / (t + 1 + forgetting)
    centre = theta.mean(-2)
    within = theta - centre.unsqueeze(-2)
    shift = centre - mean
    if covariance.dim() == 1:
        spread = within.square().mean(0) + (1 - w) * shift.square()  # [P]
    else:
        outer = shift.unsqueeze(-1) * shift.unsqueeze(-2)
        spread = within.mT @ within / theta.shape[-2] + (1 - w) * outer  # [P, P]
    return {"mean": mean + w * shift, "covariance": (1 - w) * covariance + w * spread}


# variance of chains above any plausible scale of parameters
MAX_CHAIN_VARIANCE = 1e30


def factor(covariance: Tensor, regularisation: float) -> Tensor:
    """L [P, P] with L Lᵀ = Σ + ε I, or the square roots [P] of its diagonal.

    Raises NumericalError if the factor does not exist because of rounding.

    Source: Haario et al. (2001), section 2."""
    if covariance.dim() == 1:
        return (covariance + regularisation).sqrt()
    L, info = torch.linalg.cholesky_ex(
        covariance + regularisation * torch.eye(covariance.shape[-1]).to(covariance)
    )
    if info.any():
        spread = torch.linalg.diagonal(covariance).max()
        if not spread < MAX_CHAIN_VARIANCE:
            raise NumericalError(
                f"the chains diverged in warm-up, to variances of {float(spread):.2g}",
                "use a density with a finite integral, or add a prior",
            )
        raise NumericalError(
            "the covariance of the chains in warm-up has no Cholesky factor",
            "raise inference.regularisation, or use inference.covariance=diagonal",
        )
    # LAPACK returns column-major, a checkpoint loads row-major, and BLAS rounding depends on layout
    return L.contiguous()


def apply_factor(L: Tensor | None, z: Tensor) -> Tensor:
    """L z of each row of z [C, P]; L [P, P], [P] (diagonal) or None (identity)."""
    if L is None:
        return z
    return z * L if L.dim() == 1 else z @ L.mT


def apply_factor_t(L: Tensor | None, g: Tensor) -> Tensor:
    """Lᵀ g of each row of g [C, P], with L as in ``apply_factor``."""
    if L is None:
        return g
    return g * L if L.dim() == 1 else g @ L


def robbins_monro(log_step: Tensor, alpha: Tensor, target: float, weight: float) -> Tensor:
    """Robbins–Monro update log ε + γ_t (α − α*) of each chain; log ε, α [C].

    The step size grows if too many proposals are accepted.

    Source: Andrieu and Thoms (2008), Algorithm 4.
    """
    return log_step + weight * (alpha - target)
