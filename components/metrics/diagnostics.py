"""Convergence diagnostics of Markov chains, computed by ArviZ.

Functions of draws [C, N, P] return one value for each coordinate, [P]; NaN for a coordinate that
never moved in any chain.  They require ``FEWEST_DRAWS`` draws per chain; with fewer,
``convergence`` warns and omits the diagnostic."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.contracts.posteriors import HoldsDraws
from components.errors import list_names, warn_incomplete
from components.metrics.array_stats import load_array_stats
from components.metrics.importance_weights import (
    FEWEST_WEIGHTS,
    log_relative_variance,
    pareto_k,
    weight_ess,
)

FEWEST_DRAWS = 4  # per chain: each half of a split chain requires a variance


def _each(statistic: str, draws: Tensor, **options: Any) -> Tensor:
    """An ArviZ statistic of every coordinate, [C, N, P] -> [P]; NaN for coordinates that never
    moved."""
    values = draws.detach().double().cpu().numpy()
    with np.errstate(all="ignore"):  # a constant chain causes a division by its variance, 0
        result = getattr(load_array_stats(), statistic)(
            values, chain_axis=0, draw_axis=1, **options
        )
    # ArviZ would treat draws that never moved as independent
    return torch.as_tensor(result).masked_fill(resting(draws).cpu(), torch.nan)


def resting(draws: Tensor) -> Tensor:
    """True for coordinates with the same value in all draws of all chains, [C, N, P] -> [P].

    Such a coordinate is constant (for example, a column that is never included) and does not mix.
    Chains constant at different values are stuck, not resting: their R̂ is infinite."""
    return (draws == draws[:1, :1]).all(0).all(0)


def worst_coordinate_value(each: Tensor, rests: Tensor, largest: bool) -> Tensor:
    """The worst value of the coordinates that move; NaN if none moves, or if one of them is NaN.

    Args:
        each: a diagnostic of each coordinate, [..., P].
        rests: ``resting`` of the same coordinates, [..., P].
        largest: True if large values are bad, as for R̂.

    Returns:
        [...], the worst."""
    rests = rests.to(each.device)
    each = each.masked_fill(rests, -torch.inf if largest else torch.inf)
    worst = each.amax(-1) if largest else each.amin(-1)
    return worst.masked_fill(rests.all(-1), torch.nan)


def bulk_ess(draws: Tensor) -> Tensor:
    """Bulk effective sample size of each coordinate, over rank-normalised split chains; [C, N, P]
    -> [P].

    Source: Vehtari et al. (2021), section 4.3."""
    return _each("ess", draws, method="bulk")


def tail_ess(draws: Tensor) -> Tensor:
    """Tail effective sample size: the smaller of those for the indicators of the 5 % and 95 %
    quantiles; [C, N, P] -> [P].

    Source: Vehtari et al. (2021), section 4.3."""
    return _each("ess", draws, method="tail", prob=(0.05, 0.95))


def split_rhat(draws: Tensor) -> Tensor:
    """Rank-normalised split-R̂ of each coordinate, the larger of bulk and folded, for at least two
    chains, [C, N, P] -> [P].

    Source: Vehtari et al. (2021), section 4.1."""
    return _each("rhat", draws, method="rank")


def count_superchains(start: Tensor) -> int | None:
    """K if the starts of C chains [C, P] are K different points with C/K ≥ 2 consecutive chains
    each, otherwise None."""
    begins = (start[1:] != start[:-1]).any(1).nonzero().flatten() + 1
    K = len(begins) + 1
    together = len(start) // K
    expected = torch.arange(1, K, device=start.device) * together
    is_grouped = K >= 2 and together >= 2 and len(start) == K * together
    return K if is_grouped and torch.equal(begins, expected) else None


def nested_rhat(draws: Tensor, superchains: int) -> Tensor:
    """Rank-normalised nested R̂ of each coordinate, for K groups of C/K consecutive chains with a
    common start; [C, N, P] -> [P].

    It compares groups, so that chains may be as short as four draws; for independent draws it is
    about √(1 + K/(C N)).

    Source: Margossian et al. (2024), eqs. (6)-(8)."""
    together = draws.shape[0] // superchains
    ids = np.repeat(np.arange(superchains), together)
    return _each("rhat_nested", draws, superchain_ids=ids, method="rank")


def mcse_mean(draws: Tensor) -> Tensor:
    """Monte-Carlo standard error of each coordinate's mean, sd/√ESS; [C, N, P] -> [P].

    Source: Vehtari et al. (2021), section 4.3."""
    return _each("mcse", draws, method="mean")


def e_bfmi(energy: Tensor) -> Tensor:
    """Estimated Bayesian fraction of missing information of each chain, Σ(E_n − E_{n−1})² / Σ(E_n −
    Ē)²; [C, N] -> [C].

    Below about 0.3 the random momenta of a Hamiltonian sampler explore the energy too slowly.

    Source: Betancourt (2016)."""
    values = energy.detach().double().cpu().numpy()
    with np.errstate(all="ignore"):
        return torch.as_tensor(
            np.asarray(load_array_stats().bfmi(values, chain_axis=0, draw_axis=1))
        )


def convergence(
    draws: HoldsDraws, values: Tensor | None = None
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """Convergence diagnostics as (worst values by name, values of each coordinate).

    ``values`` [C, N, Q] are the quantities to diagnose; the default is the parameters themselves.
    Markov chains have ``ess`` (smallest bulk ESS of the coordinates that move), ``ess_tail``,
    ``rhat`` (largest), ``rhat_nested`` (largest, with superchains), and, if the sampler reports
    them, ``divergences`` (number), ``acceptance`` (mean rate) and ``e_bfmi`` (smallest of the
    chains).  Weighted draws are independent and have ``weight_ess``, ``log_relative_variance`` and
    ``pareto_k``.  If there are too few draws or chains, an IncompleteResultWarning names the
    missing scores and the reason."""
    chains = draws.n_chains
    n = draws.n_draws
    if n == 0:
        return {}, {}
    if draws.log_weights is not None:
        out = {
            "weight_ess": weight_ess(draws.log_weights),
            "log_relative_variance": log_relative_variance(draws.values, draws.log_weights),
        }
        if chains * n < FEWEST_WEIGHTS:
            warn_incomplete(
                f"pareto_k: {chains * n} weights are too few, {FEWEST_WEIGHTS} required; take more "
                f"draws"
            )
        else:
            out["pareto_k"] = pareto_k(draws.log_weights)
        return out, {}
    out = {}
    by_coordinate = {}
    stats = draws.stats
    enough = n >= FEWEST_DRAWS
    if enough:
        values = draws.values if values is None else values
        by_coordinate = {"ess": bulk_ess(values), "ess_tail": tail_ess(values)}
        if chains > 1:
            by_coordinate["rhat"] = split_rhat(values)
        else:
            warn_incomplete("rhat: 1 chain is too few, 2 required; raise inference.chains")
        if (superchains := count_superchains(draws.start)) is not None:
            by_coordinate["rhat_nested"] = nested_rhat(values, superchains)
        rests = resting(values)
        out = {
            name: float(worst_coordinate_value(each, rests, largest="rhat" in name))
            for name, each in by_coordinate.items()
        }
    else:
        missing = ", ".join(["ess", "ess_tail", "rhat", *(["e_bfmi"] if "energy" in stats else [])])
        warn_incomplete(
            f"{missing}: {n} draws per chain are too few, {FEWEST_DRAWS} required; raise steps, or "
            f"lower burn-in or thinning"
        )
    if "diverging" in stats:
        out["divergences"] = float(stats["diverging"].double().sum())
    if "acceptance_rate" in stats:
        out["acceptance"] = float(stats["acceptance_rate"].double().mean())
    if "energy" in stats and enough:
        out["e_bfmi"] = float(e_bfmi(stats["energy"]).min())
    return out, by_coordinate


def _names(draws: HoldsDraws) -> list[str]:
    """Names of the coordinates; empty for unnamed draws."""
    return list(draws.names) if len(draws.names) == draws.values.shape[2] else []


def describe_constant_coordinates(draws: HoldsDraws) -> str:
    """Clause for a check that lists the constant coordinates, which R̂ and ESS exclude."""
    each = [resting(draws.select_replicate(r).values).tolist() for r in range(draws.replicates)]
    names = [name for j, name in enumerate(_names(draws)) if any(rests[j] for rests in each)]
    clause = f"; without constant coordinates: {list_names(names)}"
    return clause if names else ""


def format_worst_coordinate(
    draws: HoldsDraws, statistic: Callable[[Tensor], Tensor], value: float
) -> str:
    """Name of the coordinate with the worst value; empty if the scores diagnose other
    quantities."""
    for r in range(draws.replicates if _names(draws) else 0):
        each = statistic(draws.select_replicate(r).values).tolist()
        for name, other in zip(_names(draws), each, strict=True):
            if math.isclose(other, value, rel_tol=1e-6):
                return f" ({name})"
    return ""
