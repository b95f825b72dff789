"""NumPyro's no-U-turn sampler."""

from __future__ import annotations

from typing import Any

from components.inference.peers.jax_peer import Init, JaxNUTS, Move
from components.registry import register


@register("inference", "numpyro_nuts")
class NumPyroNUTS(JaxNUTS):
    """No-U-turn sampler from NumPyro, C chains in one compiled program, with the warm-up of Stan.

    Each chain learns its own step size and masses in windows of doubling length.

    Source: Phan, Pradhan & Jankowiak (2019), section 3.
    """

    package = "numpyro"

    def make_kernel(self, log_density: Any, dim: int) -> tuple[Init, Move]:
        from numpyro.infer import NUTS

        sampler = NUTS(
            potential_fn=lambda theta: -log_density(theta),
            dense_mass=self.mass == "dense",
            target_accept_prob=self.target_acceptance,
            max_tree_depth=self.max_depth,
        )

        def move(key: Any, t: Any, state: Any) -> Any:
            state = sampler.sample(state, (), {})  # the state holds a key and the step number
            stats = {
                "acceptance_rate": state.accept_prob,
                "n_steps": state.num_steps,
                "diverging": state.diverging,
                "energy": state.energy,
            }
            return state, state.z, stats

        return lambda key, theta: sampler.init(key, self.warmup, theta), move
