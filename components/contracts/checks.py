"""Post-run checks of sampling, training and attacks, and checks of array shapes.

Compared arrays must have the same shape: otherwise they would be broadcast, and the score would be
meaningless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from components.errors import ConfigMismatchError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    NamedScores = dict[str, Tensor | float]  # numbers, or [R] where replicates are a dimension
else:
    NamedScores = dict

FINITE = "scores are finite"  # check that every run must pass; a run that fails it has diverged
# names in the steps' info that checks read at the end
CHECKED_STEP_INFO = frozenset({"elbo", "discriminator_loss"})
# recorded (step, values); values are numbers, or one per replicate
Trace = Iterable[tuple[int, Mapping[str, Any]]]
Scores = Mapping[str, Any]  # name -> number, or a list where replicates are a dimension


class Check(NamedTuple):
    """One expected property of a run, and the outcome of its check."""

    name: str  # the expected condition
    passed: bool | None  # None if not checked, for the reason in the detail
    detail: str  # the measured numbers
    is_short: bool = False  # True if a longer run would pass, False if the result is biased


def recorded_values(trace: Trace, name: str) -> list[list[float]]:
    """Values recorded under a name, one per replicate."""
    values = [record[name] for _, record in trace if name in record]
    return [value if isinstance(value, list) else [value] for value in values]


@dataclass(frozen=True)
class Bias:
    """Reason why the draws of a method do not follow its target distribution."""

    reason: str  # completes "biased by": "its step size"
    # keys with which the bias vanishes as ``step_size`` falls
    settings: Mapping[str, Any] = field(default_factory=dict)
    # largest error of a moment, in standard deviations of the target, at small steps
    most: float = 0.0


def check_shape(what: str, given: Tensor | NDArray[Any], *expected: int | None) -> None:
    """Compare the shape of predictions, draws or estimates with the truth before scoring.

    Args:
        what: name of the given array in the message, such as "the filtered states".
        given: the array.
        expected: its size along each dimension; None for any.

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
            f"{what} have shape {given_shape}, but the data have shape {expected_shape}; "
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
