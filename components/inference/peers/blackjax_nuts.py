"""BlackJAX's no-U-turn sampler."""

from __future__ import annotations

import warnings
from typing import Any

from components.inference.peers.jax_peer import Init, JaxNUTS, Move
from components.registry import register


@register("inference", "blackjax_nuts")
class BlackJAXNUTS(JaxNUTS):
    """No-U-turn sampler from BlackJAX, C chains in one compiled program, with its window
    adaptation.

    Each chain learns its own step size and masses, by the schedule of Stan.

    Source: Cabezas et al. (2024).
    """

    package = "blackjax"

    def make_kernel(self, log_density: Any, dim: int) -> tuple[Init, Move]:
        import jax
        from blackjax import nuts
        from blackjax.adaptation import window_adaptation

        with warnings.catch_warnings():
            # the recommended warm-up in a single call could not be stopped by a budget
            warnings.simplefilter("ignore", DeprecationWarning)
            begin, learn, finish = window_adaptation.base(
                self.mass == "diagonal", self.target_acceptance
            )
        sampler = nuts.build_kernel()
        schedule = window_adaptation.build_schedule(max(self.warmup, 1))

        def init(key: Any, theta: Any) -> Any:
            return nuts.init(theta, log_density), begin(theta, 1.0)

        def move(key: Any, t: Any, carry: Any) -> Any:
            is_warm_up = t < self.warmup
            tuning = carry[1]
            used = (tuning.step_size, tuning.inverse_mass_matrix)
            used = jax.lax.cond(is_warm_up, lambda: used, lambda: finish(tuning))
            state, info = sampler(
                key, carry[0], log_density, *used, max_num_doublings=self.max_depth
            )
            tuning = jax.lax.cond(
                is_warm_up,
                lambda: learn(tuning, schedule[t], state.position, info.acceptance_rate),
                lambda: tuning,
            )
            stats = {
                "acceptance_rate": info.acceptance_rate,
                "n_steps": info.num_integration_steps,
                "diverging": info.is_divergent,
                "energy": info.energy,
            }
            return (state, tuning), state.position, stats

        return init, move
