"""Calls of a user's component: what its methods raise, draw and return, in one line that names its
file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

from components.contracts import attackers, roles
from components.contracts.capabilities import missing
from components.contracts.plugins.declared import METHODS, role_base_class
from components.contracts.plugins.global_streams import GLOBAL_STREAM_FIXES, drawn_from, stand
from components.contracts.plugins.process_settings import preserve_settings
from components.contracts.posteriors import POSTERIORS
from components.contracts.structural import Terms
from components.contracts.user_code import (
    format_code_location,
    is_interrupt,
    refusal,
    trap_process_exit,
)
from components.errors import ConfigMismatchError, GlobalStreamError

C = TypeVar("C", bound=type)
PROBLEM = ("kind", "name", "replicates", "length", "batches", "score", "draw", "describe")
Check = Callable[
    [Any, tuple[Any, ...], Any], str
]  # component, arguments, returned value -> the error; "": none


def is_own_error(error: BaseException) -> bool:
    """True for an error that says in its own words what is wrong, that memory has run out, or for
    Ctrl-C."""
    ours = type(error).__module__.partition(".")[0] in ("components", "runner")
    return ours or isinstance(error, MemoryError | torch.OutOfMemoryError) or is_interrupt(error)


@cache
def watch_class(role: str, cls: C) -> C:
    """The class of a user with its role's methods watched.

    They raise ConfigMismatchError, in one line that names the file, where they raise anything, end
    the process, draw from a global stream or return what the role does not take."""
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
    check = CHECKS.get((role_base_class(cls), name))  # type: ignore[arg-type]

    @wraps(method)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        where = f"{role}={self.name}: {name}"
        before = stand()
        try:
            with preserve_settings(), trap_process_exit():
                returned = method(self, *given, **named)
        except BaseException as error:
            if is_own_error(error):
                raise
            raise refusal(where, error, method) from error
        if stream := drawn_from(before):
            raise GlobalStreamError(
                f"{where} draws from {stream} global stream, or seeds it; "
                f"{GLOBAL_STREAM_FIXES[stream]} ({format_code_location(method)})"
            )
        if check is not None and (wrong := check(self, (*given, *named.values()), returned)):
            raise ConfigMismatchError(f"{where} {wrong} ({format_code_location(method)})")
        return returned

    return call


def _describe_type(value: object) -> str:
    name = type(value).__name__
    return "nothing" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _problem(dataset: Any, given: tuple[Any, ...], returned: Any) -> str:
    lacks = [name for name in PROBLEM if not hasattr(returned, name)]
    if lacks:
        return (
            f"returns {_describe_type(returned)}, which is no problem: it lacks {', '.join(lacks)}"
        )
    if returned.kind != dataset.kind:
        return f"returns a {returned.kind} problem; the class says kind = {dataset.kind!r}"
    return ""


def _check_built_model(model: Any, given: tuple[Any, ...], returned: Any) -> str:
    lacks = missing(returned, model.capabilities())
    return (
        f"returns {_describe_type(returned)} without {', '.join(lacks)}, which offers names"
        if lacks
        else ""
    )


def _state(inference: Any, given: tuple[Any, ...], returned: Any) -> str:
    if not dataclasses.is_dataclass(returned) or isinstance(returned, type):
        return f"returns {_describe_type(returned)}, must return the state, a dataclass"
    return ""


def _step(inference: Any, given: tuple[Any, ...], returned: Any) -> str:
    if not isinstance(returned, tuple) or len(returned) != 2:
        size = f" of {len(returned)}" if isinstance(returned, tuple) else ""
        return f"returns {_describe_type(returned)}{size}, must return (state, info)"
    state, info = returned
    if wrong := _state(inference, given, state):
        return f"{wrong}, and info"
    if given and type(state) is not type(given[0]):
        return f"returns a state of {type(state).__name__} for one of {type(given[0]).__name__}; both must be of one class"
    if recast := _describe_dtype_change(given[0] if given else state, state):
        return recast
    if not isinstance(info, dict) or not all(isinstance(name, str) for name in info):
        return f"returns {_describe_type(info)} for info, must return a dictionary of numbers or tensors by name"
    for name, value in info.items():
        if not isinstance(value, Tensor | int | float) and not _is_scalar(value):
            return f"returns info[{name!r}] = {_describe_type(value)}, must be a number or a tensor"
    return ""


def _describe_dtype_change(before: Any, after: Any) -> str:
    """Describe the error in the precision of a state that a step returns."""
    for name in (field.name for field in dataclasses.fields(after)):
        old = getattr(before, name, None)
        new = getattr(after, name, None)
        if not (isinstance(old, Tensor) and isinstance(new, Tensor)):
            continue
        if old.is_floating_point() and new.dtype != old.dtype:
            return f"returns state.{name} as {new.dtype}, it was given {old.dtype}; keep the dtype of the run"
    return ""


def _is_scalar(value: object) -> bool:
    """True for numbers of NumPy, and for nothing at all, which is not recorded."""
    return value is None or type(value).__module__ == "numpy"


def _posterior(inference: Any, given: tuple[Any, ...], returned: Any) -> str:
    if inference.variants():  # one posterior of each
        return ""
    lacks = [
        word for word in sorted(inference.provides) if not isinstance(returned, POSTERIORS[word])
    ]
    return (
        f"returns {_describe_type(returned)} without {', '.join(lacks)}, which gives names"
        if lacks
        else ""
    )


def _check_perturbed(attacker: Any, given: tuple[Any, ...], returned: Any) -> str:
    return _tensor_like(given[1], "x", returned) if len(given) > 1 else ""


def _check_corrupted(attacker: Any, given: tuple[Any, ...], returned: Any) -> str:
    return _tensor_like(given[0].y, "the observations", returned, finite=False)


def _tensor_like(like: Tensor, named: str, returned: Any, finite: bool = True) -> str:
    if not isinstance(returned, Tensor):
        return f"returns {_describe_type(returned)}, must return a tensor like {named}"
    if returned.shape != like.shape:
        return (
            f"returns {list(returned.shape)}, must return the shape of {named}, {list(like.shape)}"
        )
    if returned.dtype != like.dtype:
        return f"returns {returned.dtype}, must return {like.dtype}, as {named}"
    return (
        "returns numbers that are not finite"
        if finite and not bool(returned.isfinite().all())
        else ""
    )


def _check_opponent_methods(opponent: Any, given: tuple[Any, ...], returned: Any) -> str:
    if not isinstance(returned, Tensor):
        return f"returns {_describe_type(returned)}, must return a tensor of numbers of actions, one for each replicate"
    replicates = len(given[1].s) if len(given) > 1 else len(returned)
    if returned.shape != (replicates,):
        return f"returns {list(returned.shape)}, must return an action for each replicate, [{replicates}]"
    if opponent.third_party:
        return ""
    if returned.dtype != torch.long:
        return f"returns {returned.dtype}, must return numbers of actions, torch.long"
    return (
        "returns an action below 0; actions are numbered from 0"
        if bool((returned < 0).any())
        else ""
    )


def _check_estimate(gradient: Any, given: tuple[Any, ...], returned: Any) -> str:
    if not isinstance(returned, tuple) or len(returned) != 3:
        return f"returns {_describe_type(returned)}, must return (gradients, terms, state)"
    gradients, terms, _ = returned
    if not isinstance(gradients, list):
        return f"returns {_describe_type(gradients)} for gradients, must return a list, one for each parameter"
    return (
        ""
        if isinstance(terms, dict)
        else f"returns {_describe_type(terms)} for terms, must return a dictionary of tensors"
    )


def _terms(block: Any, given: tuple[Any, ...], returned: Any) -> str:
    return (
        ""
        if isinstance(returned, Terms)
        else f"returns {_describe_type(returned)}, must return Terms"
    )


CHECKS: dict[tuple[type, str], Check] = {
    (roles.Dataset, "load"): _problem,
    (roles.Model, "build"): _check_built_model,
    (roles.Inference, "init"): _state,
    (roles.Inference, "step"): _step,
    (roles.Inference, "posterior"): _posterior,
    (roles.Gradient, "estimate"): _check_estimate,
    (roles.Block, "terms"): _terms,
    (attackers.Evasion, "perturb"): _check_perturbed,
    (attackers.Contamination, "corrupt"): _check_corrupted,
    (attackers.Opponent, "act"): _check_opponent_methods,
}
