"""Models and densities that count their own evaluations, for any caller.

The runner changes the class of a built model to a subclass of itself in which the methods of
capabilities count; nested calls of these methods do not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial, wraps
from typing import Any, TypeVar

from torch import Tensor

from components.contracts.costs.counts import Costs, count_backward, pause, resume

T = TypeVar("T")

# (costs, arguments after self, result) -> replacement of the result, or None
Meter = Callable[[Costs, tuple[Any, ...], Any], Any]


def _count_draws(costs: Costs, value: Tensor, draws: int, rows: int) -> None:
    """Count a log density of the given rows and draws, and backward passes through it."""
    costs.densities += draws
    costs.forwards += draws * rows
    count_backward(costs, value, draws)


def _density(costs: Costs, given: tuple[Any, ...], result: Tensor) -> None:
    _count_draws(costs, result, len(given[0]), rows=0)


def _log_likelihood(costs: Costs, given: tuple[Any, ...], result: Tensor) -> None:
    if result.shape[1]:  # [K, B]; a density without rows counts once per draw
        _count_draws(costs, result, len(result), given[1].n_rows)


def _score(costs: Costs, given: tuple[Any, ...], result: Any) -> None:
    K = len(given[0])
    costs.densities += K
    costs.gradients += K
    costs.forwards += K * given[1].n_rows


def _by_row(costs: Costs, given: tuple[Any, ...], result: Tensor) -> None:
    _count_draws(costs, result, *result.shape)  # [S, B]


def _log_joint(costs: Costs, given: tuple[Any, ...], result: Tensor) -> None:
    """Count a log joint; derivatives through relaxed upper layers only do not reach the decoder."""
    z = given[1]
    is_relaxed = [layer.requires_grad for layer in z] if isinstance(z, tuple) else [True]
    _by_row(costs, given, result if is_relaxed[0] or not any(is_relaxed) else result.detach())


def _with_derivative(costs: Costs, given: tuple[Any, ...], result: Any) -> Any:
    log_q, log_joint, pull_back = result
    _by_row(costs, given, log_joint)

    def count_rows(*cotangents: Tensor) -> Any:
        costs.gradients += len(log_joint)
        return pull_back(*cotangents)

    return log_q, log_joint, count_rows


def _n_draws(noise: Any) -> int:
    """Number S of noise draws that a bound reads; 1 if it reads no noise."""
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
    # of ``LogJoint``; evaluating only the prior is not counted
    "log_likelihood": _log_likelihood,
    "score": _score,
    "draw_block": _draw_block,
    # of bounds
    "elbo": _elbo,
    "elbo_rows": _by_row,
    "path_rows": _by_row,
    "rows_at": _by_row,
    "log_joint": _log_joint,
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
    # of objects that return another model
    "at": lambda costs, given, result: metered(result),
    "integrate_out": lambda costs, given, result: metered(result),
    # of models fitted in a single call
    "coefficients": _fit,
    "fit": _fit,
    "counts": _fit,
}


def metered(model: T) -> T:
    """The same object with counting methods; its class becomes a subclass of the original class."""
    plain: type = type(model)
    with suppress(
        TypeError
    ):  # the class of an object implemented in C cannot change: it must count itself
        object.__setattr__(model, "__class__", _metered_class(plain))
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
    """Wrap a method so that its calls are counted, but not the calls that it makes."""

    @wraps(plain)
    def method(self: Any, *args: Any, **named: Any) -> Any:
        costs = pause()
        if costs is None:
            return plain(self, *args, **named)
        try:
            result = plain(self, *args, **named)
        finally:
            resume(costs)
        try:
            other = meter(costs, (*args, *named.values()), result)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return result  # a user's method that shares only the name
        return result if other is None else other

    return method


def metered_density(log_density: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A log density θ [K, P] -> [K] that counts evaluations of itself and of its gradient."""
    return partial(_count_calls(lambda _, theta: log_density(theta), _density), None)
