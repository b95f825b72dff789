"""Samplers written in JAX: a torch density as a JAX function with a custom gradient.

Chains are vectorised by ``jax.vmap``, and one callback evaluates all of them.  A JAX loop runs
until its last chain has finished, and also computes the chains that have already finished.  These
evaluations have no effect and are skipped: ``_masked_loops`` passes the condition of a loop to the
density inside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from components.inference.peers.peer import PeerTarget

_running: list[Any] = []  # conditions of the loops being traced, innermost last


def _is_running() -> Any:
    return _running[-1] if _running else jnp.asarray(True)


@contextmanager
def _masked_loops() -> Iterator[None]:
    """Make loops traced inside this context mask their densities chain by chain."""
    plain = {name: getattr(lax, name) for name in ("while_loop", "fori_loop")}

    def while_loop(condition: Any, body: Any, start: Any) -> Any:
        outside = _is_running()

        def is_running(carry: Any) -> Any:
            return condition(carry) & outside

        def mask_body(carry: Any) -> Any:
            _running.append(is_running(carry))
            try:
                return body(carry)
            finally:
                _running.pop()

        return plain["while_loop"](is_running, mask_body, start)

    def fori_loop(lower: int, upper: Any, body: Any, start: Any) -> Any:
        first = (jnp.full_like(upper, lower), start)
        return while_loop(lambda c: c[0] < upper, lambda c: (c[0] + 1, body(*c)), first)[1]

    vars(lax).update(while_loop=while_loop, fori_loop=fori_loop)
    try:
        yield
    finally:
        vars(lax).update(plain)


@contextmanager
def jax_settings() -> Iterator[None]:
    """Use float64 in JAX in all threads, because its callbacks run in its own threads."""
    previous = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        with _masked_loops():
            yield
    finally:
        jax.config.update("jax_enable_x64", previous)


def make_density(target: PeerTarget) -> Any:
    """log π of a single chain, θ [P] -> [], a function of JAX that is differentiable once."""
    shapes = {False: ((),), True: ((), (target.dim,))}

    def evaluate(theta: Any, is_running: Any, gradient: bool) -> Any:
        rows = np.asarray(is_running)  # [...]
        results = [np.zeros(rows.shape + shape) for shape in shapes[gradient]]
        if rows.any():
            points = np.asarray(theta)[rows]
            values = target.value_and_gradient(points) if gradient else (target.value(points),)
            for result, value in zip(results, values, strict=True):
                result[rows] = value
        return tuple(results)

    def call(gradient: bool, theta: Any, is_running: Any) -> Any:
        results = tuple(jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes[gradient])
        function = partial(evaluate, gradient=gradient)
        return jax.pure_callback(function, results, theta, is_running, vmap_method="broadcast_all")

    value = jax.custom_vjp(lambda theta, is_running: call(False, theta, is_running)[0])
    value.defvjp(partial(call, True), lambda slope, g: (g * slope, None))
    return lambda theta: value(theta, _is_running())
