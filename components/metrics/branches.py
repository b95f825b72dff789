"""Test whether a predictive distribution covers two branches."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.checks import check_shape
from components.contracts.predictive import GaussianMixture

APART = 3.0  # branches closer than this (in standard deviations of their noise) are skipped
MAX_MODE_DISTANCE = 1.0  # a mode within this distance belongs to the branch
WITHIN = 2.0
MASS = 0.3  # minimum mass within that distance of it
SPACING = 0.1  # spacing of the labels at which the density is evaluated
MARGIN = 5.0  # range of these labels beyond the branches


def both_branches(predictive: GaussianMixture, branches: GaussianMixture) -> Tensor:
    """Share of inputs at which both branches are predicted, among those where two branches of unit
    noise are 3 apart [].

    A branch is predicted if p(y|x) has a mode within 1 of it and at least 0.3 of its mass within 2
    of it.  For one task; ``branches`` has two components (μ [2, B, 1]); NaN if the branches are
    nowhere apart."""
    check_shape("the predictions", predictive.mu, None, branches.mu.shape[1], 1)
    first, second = branches.mu[:, :, 0]  # [B]
    apart = (first - second).abs() >= APART
    if not bool(apart.any()):
        return predictive.mu.new_tensor(torch.nan)
    mu = predictive.mu[:, apart]
    v = predictive.v[:, apart]
    mixture = GaussianMixture(mu, v)
    has_both = torch.ones(mu.shape[1], dtype=torch.bool, device=mu.device)
    low = float(branches.mu.min()) - MARGIN
    high = float(branches.mu.max()) + MARGIN
    y = torch.arange(low, high, SPACING, dtype=mu.dtype, device=mu.device)
    # [B, Y]
    density = torch.stack([mixture.log_prob(point.expand(mu.shape[1], 1))[:, 0] for point in y], 1)
    rises = density.diff(dim=1) > 0
    mode = torch.zeros_like(density, dtype=torch.bool)
    mode[:, 1:-1] = rises[:, :-1] & ~rises[:, 1:]
    for branch in (first[apart], second[apart]):
        near = (y - branch[:, None]).abs() <= MAX_MODE_DISTANCE
        mass = mixture.cdf((branch + WITHIN)[:, None]) - mixture.cdf((branch - WITHIN)[:, None])
        has_both &= (mode & near).any(1) & (mass[:, 0] >= MASS)
    return has_both.to(mu).mean()
