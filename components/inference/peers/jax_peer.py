"""Base of the samplers written in JAX."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from components.contracts.roles import BetweenZeroAndOne
from components.inference.peers.peer import Peer, PeerTarget, Transition

Init = Callable[[Any, Any], Any]  # key, θ [P] -> state
# key, step number from 0, state -> state, θ [P], statistics
Move = Callable[[Any, Any, Any], tuple[Any, Any, dict[str, Any]]]


class JaxPeer(Peer):
    """Sampler in JAX: chains are vectorised, and one callback evaluates the density for all."""

    @abstractmethod
    def make_kernel(self, log_density: Any, dim: int) -> tuple[Init, Move]:
        """Start and transition of a single chain, for log π of θ [P]."""

    def sample(self, target: PeerTarget, seed: int) -> Iterator[Transition]:
        import jax

        from components.inference.peers.jax_density import jax_settings, make_density

        key = jax.random.PRNGKey(seed)
        with jax_settings():
            init, move = self.make_kernel(make_density(target), target.dim)
            state = jax.jit(jax.vmap(init))(jax.random.split(key, len(target.start)), target.start)
        advance = jax.jit(jax.vmap(move, (0, None, 0)))
        for t in range(2**31):
            with jax_settings():
                keys = jax.random.split(jax.random.fold_in(key, t), len(target.start))
                state, theta, stats = jax.block_until_ready(advance(keys, t, state))
            yield theta, stats


class JaxNUTS(JaxPeer):
    """No-U-turn sampler in JAX."""

    target_acceptance: BetweenZeroAndOne
    mass: Literal["diagonal", "dense"]
    max_depth: Annotated[int, Field(ge=1, le=20)]
