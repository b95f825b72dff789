"""BlackJAX's Pathfinder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from pydantic import PositiveInt

from components.inference.peers.peer import Peer, PeerChains, PeerTarget, Transition
from components.posteriors.draws import Draws
from components.registry import register


@register("inference", "blackjax_pathfinder")
class BlackJAXPathfinder(Peer):
    """Multi-path Pathfinder from BlackJAX: one path and C draws per step.

    A path follows L-BFGS from a new start; draws are taken from the Gaussian at the point with the
    largest evidence lower bound.  Draws of all paths have Pareto-smoothed weights p/q.

    Source: Zhang et al. (2022), Algorithm 2.
    """

    package = "blackjax"
    iterations: PositiveInt
    elbo_draws: PositiveInt

    def sample(self, target: PeerTarget, seed: int) -> Iterator[Transition]:
        import jax
        from blackjax.vi import pathfinder

        from components.inference.peers.jax_density import jax_settings, make_density

        density = make_density(target)

        @jax.jit
        def run(key: Any, start: Any) -> Any:
            first, second = jax.random.split(key)
            path, _ = pathfinder.approximate(
                first, density, start, self.elbo_draws, maxiter=self.iterations
            )
            theta, log_q = pathfinder.sample(second, path, self.chains)
            log_weight = jax.vmap(density)(theta) - log_q
            # failed paths have zero weight
            is_finite = jax.numpy.isfinite(theta).all(1) & jax.numpy.isfinite(log_weight)
            theta = jax.numpy.where(is_finite[:, None], theta, start)
            return theta, jax.numpy.where(is_finite, log_weight, -jax.numpy.inf)

        for t in range(2**31):
            with jax_settings():
                key = jax.random.fold_in(jax.random.PRNGKey(seed), t)
                theta, log_weight = jax.block_until_ready(run(key, target.draw_start(seed + t)))
            yield theta, {"log_weight": log_weight}

    def posterior(self, state: PeerChains) -> Draws:
        """Draws [C, N, P] with smoothed log-weights [C, N]."""
        draws = super().posterior(state)
        log_weights = draws.stats.pop("log_weight", draws.draws[..., 0])
        if log_weights.isfinite().any():
            from blackjax.diagnostics import psis_weights
            from jax import numpy

            smoothed, _ = psis_weights(numpy.asarray(log_weights.flatten().numpy()))
            log_weights = torch.from_numpy(np.array(smoothed)).to(log_weights).view_as(log_weights)
        return replace(draws, log_weights=log_weights)
