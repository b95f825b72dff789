"""Counted costs of a run: evaluations of the log density and of its gradient, rows through the model,
steps of an environment.

The runner counts while a method is initialised, takes steps and builds its posterior, but not while
predictions are scored.  The model counts its own evaluations (``meters``); ``count`` is for work
outside the capabilities: compiled sweeps, environments, closed forms.
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
    """Counts of one replicate, or of all replicates that are computed together.

    One evaluation computes one log density at one θ (a chain, a particle, a draw), on all rows or
    on a minibatch.
    """

    densities: int = 0  # evaluations of the log density, including those for gradients
    gradients: int = 0  # evaluations of its gradient: backward passes, or closed forms
    forwards: int = 0  # rows through the model: rows × particles or draws
    environment_steps: int = 0  # steps of games

    def counts(self) -> dict[str, int]:
        """The nonzero counts by name."""
        return {f.name: n for f in fields(self) if (n := getattr(self, f.name))}


class ForwardCosts(Costs):
    """Costs of a forward pass; the caller counts its single backward pass."""


class _Current(threading.local):
    costs: Costs | None = None  # None if counting is off
    limits: Mapping[str, float] = {}  # of costs, by kind


_current = _Current()


def pause() -> Costs | None:
    """Stop counting until ``resume`` receives the returned value.

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
    """Resume counting if it was on before ``pause``."""
    _current.costs = costs


@contextmanager
def counting(costs: Costs | None, limits: Mapping[str, float] | None = None) -> Iterator[None]:
    """Count the evaluations of this thread inside the context, within limits by kind; if these are
    None, count nothing.
    """
    outer = (_current.costs, _current.limits)
    _current.costs = costs
    _current.limits = limits or {}
    try:
        yield
    finally:
        _current.costs, _current.limits = outer


def count(
    densities: int = 0, gradients: int = 0, forwards: int = 0, environment_steps: int = 0
) -> None:
    """Add to the costs of the current training step; a no-op outside of one."""
    costs = _current.costs
    if costs is not None:
        costs.densities += densities
        costs.gradients += gradients
        costs.forwards += forwards
        costs.environment_steps += environment_steps


@contextmanager
def counting_gradients(n: int = 1) -> Iterator[None]:
    """Count n evaluations with gradients for every log density evaluated inside, without a hook on
    its backward pass.

    n is the number of densities mapped over by ``torch.func.vmap``, inside which hooks do not run.
    Densities other than the target, such as a method's own q, are not counted."""
    costs = pause()
    per_call = ForwardCosts()
    resume(None if costs is None else per_call)
    try:
        yield
    finally:
        resume(costs)
    count(n * per_call.densities, n * per_call.densities, n * per_call.forwards)


def count_backward(costs: Costs, value: Tensor, evaluations: int) -> None:
    """Count the given gradients at each backward pass through ``value``, and again if the
    derivative itself is differentiated (``create_graph``)."""
    if value.requires_grad and not isinstance(costs, ForwardCosts):

        def add(_: Tensor) -> None:
            costs.gradients += evaluations * (2 if torch.is_grad_enabled() else 1)

        value.register_hook(add)  # type: ignore[no-untyped-call]
