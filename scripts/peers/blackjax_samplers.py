"""BlackJAX's samplers on logistic regression, mapped over chains and compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.problems.supervised import Supervised
from scripts.peers.installed import peer_imports

with peer_imports():
    import blackjax
    import jax
    import jax.numpy as jnp

WARMUP = 1000


Sampler = Callable[[int], Tensor]  # number of draws -> draws [C, n, P], continuing from the last


def build_log_density(problem: Supervised) -> Callable[[Any], Any]:
    """The same log joint, up to a constant, in JAX."""
    x = np.concatenate([np.ones((len(problem.train.x), 1)), problem.train.x.numpy()], 1)
    signed = jnp.asarray(
        (x * (2 * problem.train.y.numpy() - 1)).astype(problem.train.x.numpy().dtype)
    )

    def log_joint(beta: Any) -> Any:
        return jax.nn.log_sigmoid(signed @ beta).sum() - 0.5 * (beta**2).sum()

    return log_joint


def build_sampler(
    name: str, problem: Supervised, chains: int, in_turn: bool = False, **keys: Any
) -> Sampler:
    """Sampler after window adaptation (on one chain, by design) and a burn-in of all chains.

    If ``in_turn``, chains take a step one after the other, and none waits for the deepest tree."""
    target = build_log_density(problem)
    key = jax.random.key(1)
    algorithm = getattr(blackjax, name)
    start = jnp.zeros(problem.train.x.shape[1] + 1, dtype=problem.train.x.numpy().dtype)
    warmup = blackjax.window_adaptation(algorithm, target, is_mass_matrix_diagonal=False, **keys)
    (state, parameters), _ = warmup.run(key, start, num_steps=WARMUP)
    sampler = algorithm(target, **parameters)

    def step(pair: tuple[Any, Any]) -> Any:
        return sampler.step(*pair)

    move = partial(jax.lax.map, step) if in_turn else jax.vmap(step)

    @jax.jit
    def scan(key: Any, states: Any, keys: Any) -> Any:
        def one(states: Any, key: Any) -> Any:
            states, _ = move((jax.random.split(key, chains), states))
            return states, states.position

        return jax.lax.scan(one, states, keys)

    states = jax.vmap(lambda _: state)(jnp.arange(chains))

    def more(n: int) -> Tensor:
        nonlocal states, key
        key, now = jax.random.split(key)
        states, positions = scan(now, states, jax.random.split(now, n))
        return torch.from_numpy(np.array(jax.block_until_ready(positions))).transpose(0, 1)

    return more


def evaluate_log_density(problem: Supervised, theta: Tensor) -> Tensor:
    """Log joint, up to a constant, at θ [n, P]."""
    values = jax.vmap(build_log_density(problem))(jnp.asarray(theta.numpy()))
    return torch.from_numpy(np.array(values))


def set_precision(dtype: str) -> None:
    jax.config.update("jax_enable_x64", dtype == "float64")
