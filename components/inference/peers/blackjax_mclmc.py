"""BlackJAX's adjusted microcanonical Langevin sampler."""

from __future__ import annotations

from typing import Any

from components.contracts.roles import BetweenZeroAndOne
from components.inference.peers.jax_peer import Init, JaxPeer, Move
from components.registry import register

SHARE = 0.3  # fraction of the tuned steps in each of three phases


@register("inference", "blackjax_mclmc")
class BlackJAXMCLMC(JaxPeer):
    """Microcanonical Langevin Monte Carlo with Metropolis correction, from BlackJAX.

    Each chain learns step size, length of trajectories and the scale of each coordinate.  The
    package tunes in a single call, which runs in the last step of the warm-up; the steps before it
    do nothing.

    Source: Robnik et al. (2025).
    """

    package = "blackjax"
    target_acceptance: BetweenZeroAndOne

    def make_kernel(self, log_density: Any, dim: int) -> tuple[Init, Move]:
        import jax
        import jax.numpy as jnp
        from blackjax import adjusted_mclmc_find_L_and_step_size
        from blackjax.adaptation.mclmc_adaptation import MCLMCAdaptationState
        from blackjax.mcmc import adjusted_mclmc_dynamic

        lengths = adjusted_mclmc_dynamic.make_random_trajectory_length_fn(True)
        sampler = adjusted_mclmc_dynamic.build_kernel(integration_steps_fn=lengths)

        def init(key: Any, theta: Any) -> Any:
            # initial values of the tuning
            scale = jnp.sqrt(jnp.asarray(dim, float))
            tuning = MCLMCAdaptationState(scale, 0.2 * scale, jnp.ones(dim))
            return adjusted_mclmc_dynamic.init(theta, log_density, key), tuning

        def tune(key: Any, carry: Any) -> Any:
            steps = round(self.warmup / SHARE)
            return adjusted_mclmc_find_L_and_step_size(
                sampler, log_density, steps, carry[0], key, self.target_acceptance
            )[:2]

        def draw(key: Any, carry: Any) -> Any:
            state, tuning = carry
            lengths = (tuning.L / tuning.step_size,)
            state, _ = sampler(
                key, state, log_density, tuning.step_size, jnp.inf, tuning[2], lengths
            )
            return state, tuning

        def move(key: Any, t: Any, carry: Any) -> Any:
            is_last = t == self.warmup - 1
            carry = jax.lax.cond(is_last, tune, lambda _, carry: carry, key, carry)
            carry = jax.lax.cond(t < self.warmup, lambda _, carry: carry, draw, key, carry)
            return carry, carry[0].position, {}

        return init, move
