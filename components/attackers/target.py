"""The class that a targeted attack wants to be predicted, by the name that the user's own labels
give it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

import torch
from pydantic import BaseModel, BeforeValidator, PrivateAttr
from torch import Tensor

from components.contracts.roles import Problem
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.problems.supervised import Supervised

SHOWN = 12  # names of classes in an error message


def _to_label(value: object) -> object:
    """Convert a value that YAML reads as true, false or 2.5 to the label in the file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return int(value) if value.is_integer() else repr(value)
    return value


class TargetedAttack(BaseModel):
    """An attack that wants one class to be predicted, or (``target`` null) any but the true one."""

    # class to be predicted under attack, by its label in the data; null: any but the true one
    target: Annotated[int | str | None, BeforeValidator(_to_label)]
    _number: int | None = PrivateAttr(default=None)  # of that class; None: not determined yet

    @property
    def target_class(self) -> int | None:
        """The number of the target class; None: any but the true one."""
        if self._number is not None:
            return self._number
        if not isinstance(self.target, str):
            return self.target
        raise ConfigMismatchError(
            f"attacker.target={self.target}: a label is read by with_problem(problem, rng), and a number without it"
        )

    def aims(self) -> frozenset[int | str | None]:
        return frozenset({self.target if self._number is None else self._number})

    def with_problem(self, problem: Problem, rng: Rng) -> Self:
        if self.target is None or self._number is not None or not isinstance(problem, Supervised):
            return self
        informed = self.model_copy()
        informed._number = find_class_index(
            self.target, problem.classes, problem.name, "attacker.target"
        )
        return informed

    def check_target(self, problem: Problem, key: str) -> None:
        if self.target is not None and isinstance(problem, Supervised):
            find_class_index(self.target, problem.classes, problem.name, f"{key}.target")

    def labels(self, y: Tensor) -> Tensor:
        """Labels y [B, T] with the target in the place of each that is observed; y itself without a
        target."""
        return y if self.target_class is None else torch.where(y >= 0, self.target_class, y)


def find_class_index(label: int | str, classes: Sequence[str], data: str, key: str) -> int:
    """The number of the class that a label names among the classes of the data, in their order.

    Raises:
        ConfigMismatchError: no class has that label."""
    for number, name in enumerate(classes):
        if (
            str(label) == name
            or _equal_numbers(str(label), name)
            or label == name.lower() in ("true", "false")
        ):
            return number
    plain = list(classes) == [str(i) for i in range(len(classes))]
    class_list = (
        f"0 to {len(classes) - 1}"
        if plain
        else ", ".join(classes[:SHOWN]) + (", …" if len(classes) > SHOWN else "")
    )
    raise ConfigMismatchError(
        f"{key}={label}: {data} has classes {class_list}; name one of these, or null for any but the true one"
    )


def _equal_numbers(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return False
