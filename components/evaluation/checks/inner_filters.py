"""Whether the particle filters that estimate the likelihood of parameters have collapsed."""

from __future__ import annotations

import torch

from components.contracts.checks import Check
from components.contracts.posteriors import HoldsDraws
from components.evaluation import limits


def inner_filter_checks(draws: HoldsDraws) -> list[Check]:
    """Fails where most draws, by weight, had their likelihood from a filter of which one particle carried half of the weight.

    The estimate log Ẑ of such a filter varies by many nats from pass to pass: a chain stays where it was too high, and weights
    of parameters follow the noise.  Nothing of draws that no filter judged."""
    ess = draws.stats.get("filter_ess")
    if ess is None or not ess.numel():
        return []
    weights = torch.ones_like(ess) if draws.log_weights is None else draws.log_weights.softmax(1)
    lost = (weights * (ess < limits.LEAST_ESS)).sum() / weights.sum()
    told = f"{100 * float(lost):.3g} % of the draws have a filter whose ESS falls below {limits.LEAST_ESS:g}"
    told += f"; the median of their smallest ESS is {float(ess.median()):.3g}"
    passed = float(lost) <= 0.5
    told += "" if passed else "; raise inference.filter.particles, or check the prior and the scale of the data"
    return [Check("the inner filters have not collapsed", passed, told)]
