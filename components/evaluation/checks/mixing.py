"""Checks of chains and weighted draws by the scores of their convergence."""

from __future__ import annotations

import math
from functools import partial

from components.contracts.checks import Check, Scores
from components.contracts.posteriors import HoldsDraws, SeriesDraws
from components.inference.partitions.partition_draws import PartitionDraws
from components.metrics import diagnostics, limits
from components.metrics.diagnostics import FEWEST_DRAWS

STUCK_CHAINS_MESSAGE = "no chain ever moved, in any coordinate"


def mixing_checks(posterior: object, scores: Scores) -> list[Check]:
    """``draws_checks`` of the parameters that a posterior holds draws of."""
    if isinstance(posterior, SeriesDraws):
        return draws_checks(posterior.parameters, scores)
    if isinstance(posterior, PartitionDraws):
        # few splits are accepted if few exist
        names = ("rhat", "ess", "ess_tail")
        compared = {name: scores[name] for name in names if name in scores}
        return draws_checks(posterior.summaries, compared)
    assert isinstance(posterior, HoldsDraws)
    return draws_checks(posterior, scores)


def _worst(scores: Scores, name: str, largest: bool) -> float:
    """The worst of all replicates, NaN if one has none."""
    values = scores[name] if isinstance(scores[name], list) else [scores[name]]
    return math.nan if any(math.isnan(v) for v in values) else (max if largest else min)(values)


def draws_checks(draws: HoldsDraws, scores: Scores) -> list[Check]:
    """Checks of chains or weighted draws by the scores of ``diagnostics.convergence``."""
    chains = draws.n_chains // draws.replicates
    n = draws.n_draws
    if draws.log_weights is not None:
        return [_check_pareto_k(scores, chains * n)]
    checks = []
    if n < FEWEST_DRAWS:
        detail = f"{n} draws a chain, {FEWEST_DRAWS} needed"
        ess = f"ESS is above {limits.ESS_PER_CHAIN} a chain"
        checks += [Check(f"R̂ is below {limits.RHAT:g}", None, detail), Check(ess, None, detail)]
    else:
        nested = "rhat_nested" in scores
        first = draws.select_replicate(0).start
        groups = (diagnostics.count_superchains(first) if nested else None) or chains
        checks.append(
            _check_nested_rhat(draws, scores, groups)
            if nested
            else _check_rhat(draws, scores, chains)
        )
        checks += [
            _ess(draws, scores, name, kind, groups, n * chains // groups)
            for name, kind in (("ess", "bulk"), ("ess_tail", "tail"))
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
        checks.append(
            Check(
                "enough proposals are accepted",
                value >= least,
                f"{value:.2f} of the worst of {draws.n_chains} chains, {least:g} required",
            )
        )
    return checks


def _check_rhat(draws: HoldsDraws, scores: Scores, chains: int) -> Check:
    name = f"R̂ is below {limits.RHAT:g}"
    if "rhat" not in scores:
        return Check(name, None, "1 chain, 2 needed; raise inference.chains")
    value = _worst(scores, "rhat", largest=True)
    if math.isnan(value):
        return Check(name, False, STUCK_CHAINS_MESSAGE)
    worst_name = (
        ""
        if value < limits.RHAT
        else diagnostics.format_worst_coordinate(draws, diagnostics.split_rhat, value)
    )
    return Check(
        name,
        value < limits.RHAT,
        f"{value:.4g}{worst_name}, the largest, of {chains} chains{diagnostics.describe_constant_coordinates(draws)}",
    )


def _check_nested_rhat(draws: HoldsDraws, scores: Scores, groups: int) -> Check:
    """Check of superchains: R̂ of single chains needs longer ones."""
    name = f"nested R̂ is below {limits.RHAT_NESTED:g}"
    value = _worst(scores, "rhat_nested", largest=True)
    if math.isnan(value):
        return Check(name, False, STUCK_CHAINS_MESSAGE)
    worst_name = ""
    if value >= limits.RHAT_NESTED:
        statistic = partial(diagnostics.nested_rhat, superchains=groups)
        worst_name = diagnostics.format_worst_coordinate(draws, statistic, value)
    rest = diagnostics.describe_constant_coordinates(draws)
    each = draws.n_chains // draws.replicates // groups
    detail = f"{value:.4g}{worst_name}, the largest, of {groups} superchains of {each} chains{rest}"
    return Check(name, value < limits.RHAT_NESTED, detail)


def _ess(draws: HoldsDraws, scores: Scores, name: str, which: str, chains: int, n: int) -> Check:
    """Check of ESS by chain, or by superchain where there are fewer of these."""
    unit = "chain" if chains * draws.replicates == draws.n_chains else "superchain"
    title = f"{which} ESS is above {limits.ESS_PER_CHAIN} a {unit}"
    if name not in scores:
        return Check(title, None, "not among the scores")
    total = _worst(scores, name, largest=False)
    if math.isnan(total):
        return Check(title, False, STUCK_CHAINS_MESSAGE)
    value = total / chains
    enough = value > limits.ESS_PER_CHAIN
    where = (
        ""
        if enough
        else diagnostics.format_worst_coordinate(
            draws, diagnostics.bulk_ess if name == "ess" else diagnostics.tail_ess, total
        )
    )
    return Check(title, enough, f"{value:.4g}{where}, the smallest, of {n:,} draws a {unit}")


def _check_pareto_k(scores: Scores, n: int) -> Check:
    name = "Pareto k̂ of the weights is below its limit"
    if "pareto_k" not in scores:
        return Check(name, None, f"{n} weights are too few")
    value = _worst(scores, "pareto_k", largest=True)
    most = limits.pareto_k(n)
    return Check(name, value < most, f"{value:.2f}, below {most:.2f} asked of {n:,} weights")
