"""Check for collapse of the particle filters that estimate parameters' likelihood."""

from __future__ import annotations

import torch

from components.contracts.checks import Check
from components.contracts.posteriors import HoldsDraws
from components.evaluation import limits


def inner_filter_checks(draws: HoldsDraws) -> list[Check]:
    """Check that fails if the filters of most draws, by weight, have collapsed.

    A filter has collapsed if one particle carried half of the weight.  Its estimate log Ẑ
    varies by many nats from pass to pass: a chain stays where the estimate was too high,
    and weights of parameters follow the noise.  Empty for draws without a filter.
    """
    ess = draws.stats.get("filter_ess")
    if ess is None or not ess.numel():
        return []
    weights = torch.ones_like(ess) if draws.log_weights is None else draws.log_weights.softmax(1)
    share = (weights * (ess < limits.LEAST_ESS)).sum() / weights.sum()
    detail = f"{100 * float(share):.3g} % of the draws have a filter whose ESS falls below {limits.LEAST_ESS:g}"
    detail += f"; the median of their smallest ESS is {float(ess.median()):.3g}"
    passed = float(share) <= 0.5
    detail += (
        ""
        if passed
        else "; raise inference.filter.particles, or check the prior and the scale of the data"
    )
    return [Check("the inner filters have not collapsed", passed, detail)]
