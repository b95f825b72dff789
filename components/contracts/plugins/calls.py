"""Calls of a user's component: one-line errors, with the file, for exceptions, global random draws
and invalid results of its methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, wraps
from numbers import Number
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from components.contracts import attackers, roles
from components.contracts.plugins.declared import METHODS, role_base_class
from components.contracts.plugins.global_streams import GLOBAL_STREAM_FIXES, drawn_from, stand
from components.contracts.plugins.process_settings import preserve_settings
from components.contracts.plugins.protocols import missing
from components.contracts.structural import Terms
from components.contracts.user_code import format_code_location, refusal
from components.errors import ConfigMismatchError, GlobalStreamError

C = TypeVar("C", bound=type)


class Contract(NamedTuple):
    """Requirement on the value that a method returns."""

    requirement: str  # completes "must return"
    # component, arguments, returned value
    is_met: Callable[[Any, tuple[Any, ...], Any], bool]


def is_own_error(error: BaseException) -> bool:
    """True for errors that pass unchanged: errors for users, out of memory, and Ctrl-C."""
    ours = type(error).__module__.partition(".")[0] in ("components", "runner")
    return ours or isinstance(error, MemoryError | torch.OutOfMemoryError | KeyboardInterrupt)


@cache
def watch_class(role: str, cls: C) -> C:
    """A user's class with checks around the methods of its role.

    These methods raise ConfigMismatchError, with a one-line message that names the file, if the
    user's code raises an error, exits the process, draws from a global stream or returns an invalid
    value."""
    base = role_base_class(cls)
    methods = (
        {} if base is None else {name: _watch_method(role, cls, name) for name in METHODS[base]}
    )
    inside = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
    }
    return type(cls)(cls.__name__, (cls,), inside | methods)


def _watch_method(role: str, cls: type, name: str) -> Callable[..., Any]:
    method = getattr(cls, name)
    contract = CONTRACTS.get((role_base_class(cls), name))  # type: ignore[arg-type]

    @wraps(method)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        where = f"{role}={self.name}: {name}"
        streams = stand()
        try:
            with preserve_settings():
                returned = method(self, *given, **named)
        except BaseException as error:
            if is_own_error(error):
                raise
            raise refusal(where, error, method) from error
        if stream := drawn_from(streams):
            raise GlobalStreamError(
                f"{where} draws from {stream} global stream or seeds it; "
                f"{GLOBAL_STREAM_FIXES[stream]} ({format_code_location(method)})"
            )
        if contract and not contract.is_met(self, (*given, *named.values()), returned):
            raise ConfigMismatchError(
                f"{where} returns {_describe(returned)} but must return {contract.requirement} "
                f"({format_code_location(method)})"
            )
        return returned

    return call


def _describe(value: object) -> str:
    """Type of a value; for a tensor dtype and size, for a tuple the types of its elements."""
    name = type(value).__name__
    if isinstance(value, Tensor):
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_describe, value))})"
    return "nothing" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _is_step(inference: Any, given: tuple[Any, ...], returned: Any) -> bool:
    if not isinstance(returned, tuple) or len(returned) != 2:
        return False
    state, info = returned
    return (
        type(state) is type(given[0])
        and _dtypes(state) == _dtypes(given[0])
        and isinstance(info, dict)
        and all(isinstance(name, str) for name in info)
        and all(isinstance(value, Tensor | Number | np.generic | None) for value in info.values())
    )


def _dtypes(state: Any) -> dict[str, torch.dtype]:
    """Types of the floating-point tensors of a state."""
    return {
        name: value.dtype
        for name, value in vars(state).items()
        if isinstance(value, Tensor) and value.is_floating_point()
    }


def _is_like(like: Tensor, returned: Any) -> bool:
    return (
        isinstance(returned, Tensor)
        and returned.shape == like.shape
        and returned.dtype == like.dtype
    )


def _are_actions(opponent: Any, given: tuple[Any, ...], returned: Any) -> bool:
    if not isinstance(returned, Tensor) or returned.shape != (len(given[1].s),):
        return False
    return opponent.third_party or (returned.dtype == torch.long and not bool((returned < 0).any()))


CONTRACTS: dict[tuple[type, str], Contract] = {
    (roles.Dataset, "load"): Contract(
        "a problem of the kind that the class declares",
        lambda dataset, given, returned: (
            isinstance(returned, roles.Problem) and returned.kind == dataset.kind
        ),
    ),
    (roles.Model, "build"): Contract(
        "an object with the capabilities in offers",
        lambda model, given, returned: not missing(returned, model.capabilities()),
    ),
    (roles.Inference, "init"): Contract(
        "the state, a dataclass",
        lambda inference, given, returned: (
            dataclasses.is_dataclass(returned) and not isinstance(returned, type)
        ),
    ),
    (roles.Inference, "step"): Contract(
        "(state, info): a state with the class and dtypes of the given one, and numbers or tensors "
        "by name",
        _is_step,
    ),
    (roles.Inference, "posterior"): Contract(
        "a posterior with the protocols in provides",
        # each variant has its own posterior
        lambda inference, given, returned: (
            bool(inference.variants()) or not missing(returned, inference.provides)
        ),
    ),
    (roles.Gradient, "estimate"): Contract(
        "(gradients, terms, state): a list with one gradient per parameter, a dictionary of "
        "tensors, the state",
        lambda gradient, given, returned: (
            isinstance(returned, tuple)
            and len(returned) == 3
            and isinstance(returned[0], list)
            and isinstance(returned[1], dict)
        ),
    ),
    (roles.Block, "terms"): Contract(
        "Terms", lambda block, given, returned: isinstance(returned, Terms)
    ),
    (attackers.Evasion, "perturb"): Contract(
        "a tensor of finite numbers with the shape and dtype of x",
        lambda attacker, given, returned: (
            _is_like(given[1], returned) and bool(returned.isfinite().all())
        ),
    ),
    (attackers.Contamination, "corrupt"): Contract(
        "a tensor with the shape and dtype of the observations",
        lambda attacker, given, returned: _is_like(given[0].y, returned),
    ),
    (attackers.Opponent, "act"): Contract(
        "an action number ≥ 0 for each replicate, torch.long", _are_actions
    ),
}
