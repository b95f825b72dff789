"""Growth of importance weights further out than the draws."""

from __future__ import annotations

import math

import torch

from components.contracts.capabilities import LogJoint
from components.inference.chains import ModelBatch
from components.inference.log_joint import log_joint
from components.inference.mcmc.t_mixture import TMixture

DRAWS = 2000
N_TAIL_RAYS = 100  # draws of q, and number of the least likely ones, from which rays lead outwards
# −log of the mass of q beyond the end of a ray, relative to its start
MAX_LOG_RARITY = math.log(1e4)
# number of candidate lengths of a ray
FACTORS = torch.logspace(0, 4, 2001, dtype=torch.float64)[1:]
SHARE = 0.95  # quantile over the rays: weights without a variance in some directions are enough


@torch.no_grad()
def tail_growth(fit: TMixture, model: LogJoint, batch: ModelBatch) -> float:
    """Shape k of the weights w = π/q for draws further out than those taken.

    It is measured along rays λ (θ − c) from the centre c of q.

        k = (log w(λ) − log w(1)) / s(λ),   s(λ) = −(log q(λ) + P log λ) + log q(1)

    −s is the change of the log mass of q beyond the point, up to a slowly varying factor,
    so that P_q(w > v) ∝ v^{−1/k}; λ is such that the remaining mass is 10⁴ times smaller.
    A target with the shape of q has k = 0, one with heavier tails k > 0: 1 for any
    polynomial tail and a Gaussian q, ν_q⁻¹ (ν_q − ν) for one Student's t by another.  k̂ of
    the weights depends only on their largest values, which may not have occurred yet: 0.67
    for 10,000 draws of a Gaussian and a Cauchy target.

    Args:
        fit: q.
        model: log π [K], not normalised.
        batch: the data of the log joint.

    Returns:
        The 0.95 quantile of k over the rays; −∞ if the target has no mass there.

    Source: Vehtari et al. (2024), section 2, for the shape k of weights; Owen (2013),
    section 9.1, for tails of a proposal.
    """
    generator = torch.Generator(fit.centres.device).manual_seed(0)
    theta = fit.draw(DRAWS, generator)
    theta = theta[fit.log_prob(theta).topk(N_TAIL_RAYS, largest=False).indices]  # [K, P]
    centre = fit.weights @ fit.centres
    P = theta.shape[1]
    start = fit.log_prob(theta)  # [K]
    # squared distances are quadratic in the length of a ray
    middle, ahead, behind = (fit.terms(centre + i * (theta - centre))[1] for i in (0, 1, -1))
    slope = (ahead - behind) / 2  # [K, D]
    curvature = (ahead + behind) / 2 - middle
    factor = torch.ones_like(start)
    rarer = torch.zeros_like(start)
    for value in FACTORS.tolist():
        log_q = fit.log_terms(middle + value * slope + value**2 * curvature).logsumexp(1)
        beyond = start - log_q - P * math.log(value)
        moves = (rarer < MAX_LOG_RARITY) & (beyond.isfinite())
        factor = torch.where(moves, value, factor)
        rarer = torch.where(moves, beyond, rarer)
        if not bool((rarer < MAX_LOG_RARITY).any()):
            break
    far_points = centre + factor.unsqueeze(1) * (theta - centre)
    near_weight = log_joint(model, theta, batch) - start
    far_weight = log_joint(model, far_points, batch) - fit.log_prob(far_points)
    k = (far_weight - near_weight) / rarer
    k = k[~k.isnan() & (rarer > 0)]
    return float(k.quantile(SHARE, interpolation="lower")) if len(k) else math.nan
