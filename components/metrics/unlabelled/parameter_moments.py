"""Posterior means and standard deviations of named parameters, as scores."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from components.contracts.checks import NamedScores
from components.contracts.posteriors import HoldsDraws

MOST = 40  # maximum number of reported parameters
FEWEST_OF_AN_INTERVAL = 20  # minimum draws for a 90 % interval


def scores(posterior: HoldsDraws) -> NamedScores:
    """``mean/…`` and ``sd/…`` of the first 40 parameters; empty without draws."""
    if not posterior.n_draws or posterior.replicates > 1:
        return {}
    mean = posterior.mean
    sd = (posterior.second_moment - mean.square()).clamp_min(0).sqrt()
    if posterior.n_chains * posterior.n_draws < 2:  # a single point has no spread
        return {f"mean/{name}": float(mean[j]) for j, name in enumerate(posterior.names[:MOST])}
    named = [(name, j) for j, name in enumerate(posterior.names[:MOST])]
    return {
        f"{moment}/{name}": float(v[j])
        for moment, v in (("mean", mean), ("sd", sd))
        for name, j in named
    }


def against_truth(posterior: HoldsDraws, truth: Mapping[str, Tensor]) -> NamedScores:
    """Errors and 90 % intervals of named coefficients x1 … xD and of sigma2 with known true values.

    ``error/…`` is the root mean square of posterior mean − truth, ``coverage90/…`` the share of
    parameters inside, ``width90/…`` the mean length, for the coefficients and for sigma2.  Empty
    for fewer than 20 draws, and without true values.
    """
    n = posterior.n_chains * posterior.n_draws
    is_known = truth.keys() >= {"beta", "noise"}  # names of a regression
    if not is_known or posterior.replicates > 1 or n < FEWEST_OF_AN_INTERVAL:
        return {}
    columns = {
        "beta": {f"x{j + 1}": float(b) for j, b in enumerate(truth["beta"])},
        "sigma2": {"sigma2": float(truth["noise"])},
    }
    out: NamedScores = {}
    for group, values in columns.items():
        places = [j for j, name in enumerate(posterior.names) if name in values]
        if not places:
            continue
        draws = posterior.values[..., places].flatten(0, 1)  # [C N, P]
        true = draws.new_tensor([values[posterior.names[j]] for j in places])
        sorted_draws, order = draws.sort(0)
        below = posterior.weights[order].cumsum(0)  # [C N, P]
        low, high = (
            sorted_draws.gather(0, (below < level).sum(0, keepdim=True).clamp(max=n - 1))[0]
            for level in (0.05, 0.95)
        )
        mean = posterior.weights @ draws
        errors = (mean - true).tolist()
        out[f"error/{group}"] = math.hypot(*errors) / len(errors) ** 0.5  # squares may overflow
        out[f"coverage90/{group}"] = float(((low < true) & (true < high)).double().mean())
        out[f"width90/{group}"] = float((high - low).mean())
    return out
