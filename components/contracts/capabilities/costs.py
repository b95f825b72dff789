"""Counted costs of a run: what its training evaluates, whoever asks for it.

The runner gives a built model's capabilities and a density's ``log_density`` methods that count
(``metered``); it counts while a method is initialised and takes steps, not while a posterior is
evaluated.  A method therefore has nothing to do for what it asks of its model.  ``count`` is for
work that no capability shows: compiled sweeps, environments, closed forms.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


@dataclass
class Costs:
    """Counts of one replicate, or of all that are computed together.

    An evaluation is of one log density at one θ (a chain, a particle, a draw), on all rows or on a
    minibatch.
    """

    densities: int = 0  # evaluations of the log density, those that a gradient needs among them
    gradients: int = 0  # evaluations of its gradient: backward passes, or closed forms
    forwards: int = 0  # rows through the model: rows × particles or draws
    environment_steps: int = 0  # of games

    def counts(self) -> dict[str, int]:
        """The kinds that have occurred."""
        return {f.name: n for f in fields(self) if (n := getattr(self, f.name))}


class _Current(threading.local):
    costs: Costs | None = None  # None: nothing is counted


_current = _Current()


def pause() -> Costs | None:
    """Stops counting until ``resume`` gets what this returns."""
    costs = _current.costs
    _current.costs = None
    return costs


def resume(costs: Costs | None) -> None:
    """Counts again, if it was counted before ``pause``."""
    _current.costs = costs


@contextmanager
def counting(costs: Costs | None) -> Iterator[None]:
    """Counts what this thread evaluates inside; None: does not count it."""
    before = _current.costs
    _current.costs = costs
    try:
        yield
    finally:
        _current.costs = before


def count(
    densities: int = 0, gradients: int = 0, forwards: int = 0, environment_steps: int = 0
) -> None:
    """Adds to the costs of the training step in which it is called; elsewhere it does nothing."""
    costs = _current.costs
    if costs is not None:
        costs.densities += densities
        costs.gradients += gradients
        costs.forwards += forwards
        costs.environment_steps += environment_steps


@contextmanager
def counting_mapped(n: int) -> Iterator[None]:
    """Counts n times what is evaluated inside: one of n that are mapped over (``torch.func.vmap``),
    each with its gradient, which no hook sees there."""
    costs = pause()
    one = Costs()
    resume(None if costs is None else one)
    try:
        yield
    finally:
        resume(costs)
    count(n * one.densities, n * one.densities, n * one.forwards)


def count_backward(costs: Costs, value: Tensor, evaluations: int) -> None:
    """Counts so many gradients whenever a derivative is taken back through ``value``."""
    if value.requires_grad:

        def add(_: Tensor) -> None:
            costs.gradients += evaluations

        value.register_hook(add)


# Of the costs, the arguments after self and the result: another result in its place, or None
Meter = Callable[[Costs, tuple[Any, ...], Any], Any]


def _count_draws(costs: Costs, value: Tensor, draws: int, rows: int) -> None:
    """Counts a log density of so many rows at so many draws, and what is taken back through it."""
    costs.densities += draws
    costs.forwards += draws * rows
    count_backward(costs, value, draws)


def _log_likelihood(costs: Costs, given: tuple[Any, ...], result: Tensor) -> None:
    if result.shape[1]:  # [K, B]; a density has no rows, and counts by itself
        _count_draws(costs, result, len(result), given[1].n_rows)


def _score(costs: Costs, given: tuple[Any, ...], result: Any) -> None:
    K = len(given[0])
    costs.densities += K
    costs.gradients += K
    costs.forwards += K * given[1].n_rows


def _by_row(costs: Costs, given: tuple[Any, ...], result: Tensor) -> None:
    _count_draws(costs, result, *result.shape)  # [S, B]


def _with_derivative(costs: Costs, given: tuple[Any, ...], result: Any) -> Any:
    log_q, log_joint, pull_back = result
    _by_row(costs, given, log_joint)

    def counted(*cotangents: Tensor) -> Any:
        costs.gradients += len(log_joint)
        return pull_back(*cotangents)

    return log_q, log_joint, counted


def _n_draws(noise: Any) -> int:
    """S of the noise that a bound reads; 1: it reads none."""
    try:
        draws: int = len(noise) if isinstance(noise, Tensor) else noise.n_draws
    except AttributeError:
        return 1
    return draws


def _elbo(costs: Costs, given: tuple[Any, ...], result: dict[str, Tensor]) -> None:
    batch, noise = given
    _count_draws(costs, result["elbo"], _n_draws(noise), batch.n_rows)


def _log_prob(costs: Costs, given: tuple[Any, ...], result: Tensor) -> None:
    draws = result.shape[:-1].numel()  # [..., B]
    costs.densities += draws
    count_backward(costs, result, draws)


def _outputs(costs: Costs, given: tuple[Any, ...], result: Any) -> None:
    if isinstance(result, Tensor):
        costs.forwards += result.shape[:-2].numel()  # [..., B, T, C]


def _states(costs: Costs, given: tuple[Any, ...], result: Tensor) -> None:
    costs.forwards += result.shape[:-1].numel()  # [R, N, dx]


def _density_of_states(costs: Costs, given: tuple[Any, ...], result: Tensor) -> None:
    costs.densities += result.numel()  # [R, N]


def _draw_block(costs: Costs, given: tuple[Any, ...], result: Tensor) -> None:
    if given[2] is not None:
        costs.forwards += len(result) * given[2].n_rows


def _fit(costs: Costs, given: tuple[Any, ...], result: Any) -> None:
    costs.forwards += given[0].n_rows


METERS: dict[str, Meter] = {
    # of ``LogJoint``; its prior alone costs nothing
    "log_likelihood": _log_likelihood,
    "score": _score,
    "draw_block": _draw_block,
    # of bounds
    "elbo": _elbo,
    "elbo_rows": _by_row,
    "path_rows": _by_row,
    "rows_at": _by_row,
    "log_joint": _by_row,
    "draw_with_derivative": _with_derivative,
    # of networks
    "forward": _outputs,
    "outputs": _outputs,
    "propagate": _outputs,
    "log_prob": _log_prob,
    # of state-space models
    "transition": _states,
    "transition_mean": _states,
    "propose": _states,
    "draw_states": _states,
    "log_transition": _density_of_states,
    "log_observation": _density_of_states,
    "log_predictive": _density_of_states,
    # of what gives a model in its turn
    "at": lambda costs, given, result: metered(result),
    "integrate_out": lambda costs, given, result: metered(result),
    # of what is fitted in one go
    "coefficients": _fit,
    "fit": _fit,
    "counts": _fit,
}


def metered(model: T) -> T:
    """The same object with methods that count; its class is a subclass of its own."""
    counting_class = _metered_class(type(model))
    with suppress(TypeError):  # Python lets no class of C change: it counts by itself, if at all
        object.__setattr__(model, "__class__", counting_class)
    return model


@cache
def _metered_class(cls: type) -> type:
    methods = {name: meter for name, meter in METERS.items() if callable(getattr(cls, name, None))}
    if not methods:
        return cls
    body: dict[str, Any] = {
        name: _count_calls(getattr(cls, name), meter) for name, meter in methods.items()
    }
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls)(cls.__name__, (cls,), body | names | {"__slots__": ()})


def _count_calls(plain: Callable[..., Any], meter: Meter) -> Callable[..., Any]:
    """A method that counts its calls, and nothing that it calls in turn."""

    @wraps(plain)
    def method(self: Any, *args: Any, **named: Any) -> Any:
        costs = _current.costs
        if costs is None:
            return plain(self, *args, **named)
        _current.costs = None
        try:
            result = plain(self, *args, **named)
        finally:
            _current.costs = costs
        try:
            other = meter(costs, (*args, *named.values()), result)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return result  # a method of a user's own that has only the name in common
        return result if other is None else other

    return method


def metered_density(log_density: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A log density θ [K, P] -> [K] that counts its evaluations and those of its gradient."""

    @wraps(log_density)
    def counted(theta: Tensor) -> Tensor:
        costs = _current.costs
        value = log_density(theta)
        if costs is not None:
            costs.densities += len(theta)
            if torch.is_grad_enabled():
                count_backward(costs, value, len(theta))
        return value

    return counted
