"""Posterior means and standard deviations of named parameters, as scores."""

from __future__ import annotations

from torch import Tensor

from components.contracts.posteriors import HoldsDraws

MOST = 40  # parameters that are reported


def scores(posterior: HoldsDraws) -> dict[str, Tensor | float]:
    """``mean/…`` and ``sd/…`` of the first 40 parameters; nothing while there are no draws."""
    if not posterior.n_draws or posterior.replicates > 1:
        return {}
    mean = posterior.mean
    sd = (posterior.second_moment - mean.square()).clamp_min(0).sqrt()
    if posterior.n_chains * posterior.n_draws < 2:  # one point has no spread
        return {f"mean/{name}": float(mean[j]) for j, name in enumerate(posterior.names[:MOST])}
    named = [(name, j) for j, name in enumerate(posterior.names[:MOST])]
    return {
        f"{moment}/{name}": float(v[j])
        for moment, v in (("mean", mean), ("sd", sd))
        for name, j in named
    }
