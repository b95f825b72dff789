"""Counted costs of a run: what its training evaluates, whoever asks for it.

The runner gives a built model's capabilities and a density's ``log_density`` methods that count
(``metered``); it counts while a method is initialised and takes steps, not while a posterior is
evaluated.  A method therefore has nothing to do for what it asks of its model.  ``count`` is for
work that no capability shows: compiled sweeps, environments, closed forms.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def count_backward(costs: Costs, value: Tensor, evaluations: int) -> None:
    """Counts so many gradients whenever a derivative is taken back through ``value``."""
    if value.requires_grad:

        def add(_: Tensor) -> None:
            costs.gradients += evaluations

        value.register_hook(add)


# of the costs, the arguments after self, and the result
Meter = Callable[[Costs, tuple[Any, ...], Any], None]


def _log_likelihood(costs: Costs, given: tuple[Any, ...], result: Tensor) -> None:
    if result.shape[1]:
        costs.densities += len(result)
        costs.forwards += len(result) * given[1].n_rows
        count_backward(costs, result, len(result))


def _score(costs: Costs, given: tuple[Any, ...], result: Any) -> None:
    K = len(given[0])
    costs.densities += K
    costs.gradients += K
    costs.forwards += K * given[1].n_rows


METERS: dict[str, Meter] = {"log_likelihood": _log_likelihood, "score": _score}


def metered(model: T) -> T:
    """The same object with methods that count; its class is a subclass of its own."""
    counting_class = _metered_class(type(model))
    try:
        object.__setattr__(model, "__class__", counting_class)
    except TypeError:  # a class that Python does not let change: it counts by itself, if at all
        pass
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
        meter(costs, (*args, *named.values()), result)
        return result

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
