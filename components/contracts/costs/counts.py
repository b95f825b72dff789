"""Counted costs of a run: evaluations of the log density and of its gradient, rows through the model,
steps of an environment.

The runner counts while a method is initialised, takes steps and makes its posterior, not while
predictions of it are scored.
What a method asks of its model is counted by the model (``meters``); ``count`` is for work that no
capability shows: compiled sweeps, environments, closed forms.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from components.errors import BudgetSpentError


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


class ForwardCosts(Costs):
    """Costs of a forward pass whose one backward pass is counted by the caller."""


class _Current(threading.local):
    costs: Costs | None = None  # None: nothing is counted
    limits: Mapping[str, float] = {}  # of costs, by kind


_current = _Current()


def pause() -> Costs | None:
    """Stops counting until ``resume`` gets what this returns.

    Raises:
        BudgetSpentError: costs have exceeded a limit of ``counting``.
    """
    costs = _current.costs
    limits = _current.limits
    if limits and any(getattr(costs, kind, 0) > limit for kind, limit in limits.items()):
        raise BudgetSpentError
    _current.costs = None
    return costs


def resume(costs: Costs | None) -> None:
    """Counts again, if it was counted before ``pause``."""
    _current.costs = costs


@contextmanager
def counting(costs: Costs | None, limits: Mapping[str, float] | None = None) -> Iterator[None]:
    """Counts what this thread evaluates inside, within limits by kind; None: does not count it."""
    before = (_current.costs, _current.limits)
    _current.costs = costs
    _current.limits = limits or {}
    try:
        yield
    finally:
        _current.costs, _current.limits = before


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
def counting_gradients(n: int = 1) -> Iterator[None]:
    """Counts n evaluations, each with its gradient, for every log density that is evaluated inside;
    its backward pass needs no hook.

    n is the number of densities that are mapped over (``torch.func.vmap``), which no hook sees.  A
    density that is not the target's, such as a method's own q, counts nothing."""
    costs = pause()
    one = ForwardCosts()
    resume(None if costs is None else one)
    try:
        yield
    finally:
        resume(costs)
    count(n * one.densities, n * one.densities, n * one.forwards)


def count_backward(costs: Costs, value: Tensor, evaluations: int) -> None:
    """Counts so many gradients whenever a derivative is taken back through ``value``, and as many
    again where the derivative is differentiated in its turn (``create_graph``)."""
    if value.requires_grad and not isinstance(costs, ForwardCosts):

        def add(_: Tensor) -> None:
            costs.gradients += evaluations * (2 if torch.is_grad_enabled() else 1)

        value.register_hook(add)  # type: ignore[no-untyped-call]
