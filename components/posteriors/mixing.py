"""Checks of chains and weighted draws by the scores of their convergence, and of the filters that
estimate their likelihoods."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from components.contracts.checks import Check, Scores
from components.contracts.posteriors import HoldsDraws
from components.metrics import diagnostics, limits
from components.metrics.diagnostics import FEWEST_DRAWS


def _worst(scores: Scores, name: str, largest: bool) -> float:
    """The worst value of all replicates; NaN if one is missing."""
    values = scores[name] if isinstance(scores[name], list) else [scores[name]]
    return math.nan if any(math.isnan(v) for v in values) else (max if largest else min)(values)


def draws_checks(draws: HoldsDraws, scores: Scores) -> list[Check]:
    """Checks of chains or weighted draws by the scores of ``diagnostics.convergence``."""
    chains = draws.n_chains // draws.replicates
    n = draws.n_draws
    if draws.log_weights is not None:
        return [_check_pareto_k(scores, chains * n)]
    if n < FEWEST_DRAWS:
        detail = f"{n} draws per chain, {FEWEST_DRAWS} required"
        names = f"R̂ is below {limits.RHAT:g}", f"ESS is above {limits.ESS_PER_CHAIN} per chain"
        checks = [Check(name, None, detail) for name in names]
    else:
        first = draws.select_replicate(0).start
        nested = "rhat_nested" in scores
        groups = (diagnostics.count_superchains(first) if nested else None) or chains
        checks = [
            _check_rhat(draws, scores, groups, nested),
            *(
                _ess(draws, scores, name, kind, groups, n * chains // groups)
                for name, kind in (("ess", "bulk"), ("ess_tail", "tail"))
            ),
        ]
    if "e_bfmi" in scores:
        value = _worst(scores, "e_bfmi", largest=False)
        name = f"E-BFMI is above {limits.E_BFMI:g}"
        checks.append(
            Check(name, value > limits.E_BFMI, f"{value:.2f}, the smallest of {chains} chains")
        )
    if "divergences" in scores:
        value = _worst(scores, "divergences", largest=True)
        checks.append(
            Check("no transition diverges", value == 0, f"{value:g} of {chains * n:,} draws")
        )
    if "acceptance_rate" in draws.stats:
        least = (
            limits.HAMILTONIAN_ACCEPTANCE
            if "energy" in draws.stats
            else limits.METROPOLIS_ACCEPTANCE
        )
        value = float(draws.stats["acceptance_rate"].double().mean(1).min())
        detail = f"{value:.2f} of the worst of {draws.n_chains} chains, {least:g} required"
        checks.append(Check("enough proposals are accepted", value >= least, detail))
    return checks


def _check_rhat(draws: HoldsDraws, scores: Scores, groups: int, nested: bool) -> Check:
    """Check of R̂; with superchains the nested R̂, because R̂ of single chains requires longer
    chains."""
    limit = limits.RHAT_NESTED if nested else limits.RHAT
    title = f"{'nested ' * nested}R̂ is below {limit:g}"
    score = "rhat_nested" if nested else "rhat"
    if score not in scores:
        return Check(title, None, "1 chain, 2 required; raise inference.chains")
    statistic = (
        partial(diagnostics.nested_rhat, superchains=groups) if nested else diagnostics.split_rhat
    )
    value = _worst(scores, score, largest=True)
    each = draws.n_chains // draws.replicates // groups
    unit = f"superchains of {each} chains" if nested else "chains"
    rest = diagnostics.describe_constant_coordinates(draws)
    detail = (f"{value:.4g}", f", the largest, of {groups} {unit}{rest}")
    return _judge(draws, title, value, statistic, value < limit, detail)


def _ess(draws: HoldsDraws, scores: Scores, name: str, which: str, chains: int, n: int) -> Check:
    """Check of ESS per chain, or per superchain if there are superchains."""
    unit = "chain" if chains * draws.replicates == draws.n_chains else "superchain"
    title = f"{which} ESS is above {limits.ESS_PER_CHAIN} per {unit}"
    if name not in scores:
        return Check(title, None, "not computed")
    total = _worst(scores, name, largest=False)
    value = total / chains
    statistic = diagnostics.bulk_ess if name == "ess" else diagnostics.tail_ess
    detail = (f"{value:.4g}", f", the smallest, of {n:,} draws per {unit}")
    return _judge(draws, title, total, statistic, value > limits.ESS_PER_CHAIN, detail)


def _judge(
    draws: HoldsDraws,
    title: str,
    value: float,
    statistic: Callable[[Tensor], Tensor],
    passed: bool,
    detail: tuple[str, str],
) -> Check:
    """Check of a diagnostic, which is NaN for chains that never moved.

    If it failed, the detail names the coordinate with the worst value between its two parts.
    """
    if math.isnan(value):
        return Check(title, False, "no chain moved in any coordinate")
    where = "" if passed else diagnostics.format_worst_coordinate(draws, statistic, value)
    return Check(title, passed, where.join(detail), is_short=True)


def _check_pareto_k(scores: Scores, n: int) -> Check:
    name = "Pareto k̂ of the weights is below its limit"
    if "pareto_k" not in scores:
        return Check(name, None, f"{n} weights are too few")
    value = _worst(scores, "pareto_k", largest=True)
    most = limits.pareto_k(n)
    return Check(name, value < most, f"{value:.2f}, required below {most:.2f} for {n:,} weights")


def inner_filter_checks(draws: HoldsDraws) -> list[Check]:
    """Check that fails if the filters of most draws, by weight, have collapsed.

    A filter has collapsed if one particle carries half of the weight.  Its estimate log Ẑ then
    varies by many nats between passes: a chain sticks where the estimate was too high, and weights
    of parameters follow the noise.  Empty for draws without a filter.
    """
    ess = draws.stats.get("filter_ess")
    if ess is None or not ess.numel():
        return []
    weights = torch.ones_like(ess) if draws.log_weights is None else draws.log_weights.softmax(1)
    share = (weights * (ess < limits.LEAST_ESS)).sum() / weights.sum()
    detail = (
        f"{100 * float(share):.3g} % of the draws have a filter with ESS below {limits.LEAST_ESS:g}"
    )
    detail += f"; the median of their smallest ESS is {float(ess.median()):.3g}"
    passed = float(share) <= 0.5
    detail += (
        ""
        if passed
        else "; raise inference.filter.particles, or check the prior and the scale of the data"
    )
    return [Check("the inner filters have not collapsed", passed, detail)]
