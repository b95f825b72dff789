"""Post-run checks: how a run was sampled or trained, how it was attacked, and shapes.

Arrays that are compared must have one shape: arrays that differ would be broadcast,
and the score would be meaningless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from components.errors import ConfigMismatchError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    NamedScores = dict[str, Tensor | float]  # numbers, or [R] where replicates are a dimension
else:
    NamedScores = dict

S = TypeVar("S", contravariant=True)  # the state of an inference method

FINITE = "scores are finite"  # the check that a run has to pass, or it has diverged
# information of steps that checks need at the end
CHECKED_STEP_INFO = frozenset({"ess", "elbo", "discriminator_loss"})
# (step, its values: numbers, or one for each replicate), as recorded
Trace = Iterable[tuple[int, Mapping[str, Any]]]
Scores = Mapping[str, Any]  # name -> number, or a list where replicates are a dimension


class Check(NamedTuple):
    """One thing that should hold of a run."""

    name: str  # the expected condition
    passed: bool | None  # None: not checked, the detail gives the reason
    detail: str  # the measured numbers
    is_short: bool = False  # a longer run would pass it; otherwise the result is biased


def recorded_values(trace: Trace, name: str) -> list[list[float]]:
    """Values recorded under a name, a number for each replicate."""
    values = [record[name] for _, record in trace if name in record]
    return [value if isinstance(value, list) else [value] for value in values]


@dataclass(frozen=True)
class Bias:
    """The reason why draws of a method have another law than its target."""

    reason: str  # completes "biased by": "its step size"
    # keys with which the bias vanishes as ``step_size`` falls
    settings: Mapping[str, Any] = field(default_factory=dict)
    # largest error of a moment, in standard deviations of the target, at small steps
    most: float = 0.0


@dataclass(frozen=True)
class Response:
    """How a step of a method that follows the gradient answers to it: θ moves by A ∇log p, A [K·P,
    K·P] positive.

    Where the largest eigenvalue of A times the curvature −∇² log p exceeds ``limit``, the path
    swings ever wider: 2 where steps have no memory, 2 (1 + β) where the share β of the last step is
    taken again.

    Source: Polyak (1964)."""

    apply: Callable[[Tensor], Tensor]  # A g of g [K, P]
    limit: float


@runtime_checkable
class GradientResponsiveMethod(Protocol[S]):
    """An inference method that ``evaluation.checks.step_size`` can check.

    The check tests whether its steps are small enough for the curvature.
    """

    def response(self, state: S) -> Response: ...  # of the largest step since draws are kept


def check_shape(what: str, given: Tensor | NDArray[Any], *expected: int | None) -> None:
    """Compare the shape of predictions, draws or estimates with the truth before scoring.

    Args:
        what: the name of the given array in the message, as "the filtered states".
        given: the array.
        expected: its size along each dimension; None: any.

    Raises:
        ConfigMismatchError: the shapes differ.
    """
    sizes = tuple(given.shape)
    fits = len(sizes) == len(expected) and all(
        e is None or s == e for s, e in zip(sizes, expected, strict=True)
    )
    if not fits:
        expected_shape = " × ".join("any" if e is None else str(e) for e in expected)
        given_shape = " × ".join(map(str, sizes)) or "a single number"
        raise ConfigMismatchError(
            f"{what}: their shape is {given_shape}, that of the data is {expected_shape}, and "
            f"they are not scored against each other; "
            "choose a model that fits the data"
        )


def check_same_shape(what: str, given: Tensor | NDArray[Any], truth: Tensor | NDArray[Any]) -> None:
    """Apply ``check_shape`` against another array.

    The first size of that array may be 1: one truth for all replicates.

    Raises:
        ConfigMismatchError: the shapes differ.
    """
    first, *others = truth.shape if len(truth.shape) else (1,)
    check_shape(
        what,
        given,
        *([None if first == 1 and others else first, *others] if len(truth.shape) else []),
    )
