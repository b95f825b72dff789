"""The target class of a targeted attack, by its label in the user's data."""

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

SHOWN = 12  # class names listed in an error message


def _to_label(value: object) -> object:
    """Convert a YAML value such as true, false or 2.5 to the label in the file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return int(value) if value.is_integer() else repr(value)
    return value


class TargetedAttack(BaseModel):
    """An attack towards one class, or (``target`` null) any class except the true one."""

    # class to be predicted under attack, by its label in the data; null: any except the true one
    target: Annotated[int | str | None, BeforeValidator(_to_label)]
    # index of the class; None if not determined yet
    _number: int | None = PrivateAttr(default=None)

    @property
    def target_class(self) -> int | None:
        """The number of the target class; None for any class except the true one."""
        if self._number is not None:
            return self._number
        if not isinstance(self.target, str):
            return self.target
        raise ConfigMismatchError(
            f"attacker.target={self.target}: call with_problem(problem, rng) to use a label instead of a number"
        )

    def target_labels(self) -> frozenset[int | str | None]:
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
        """Labels y [B, T] with observed ones replaced by the target; y itself without a target."""
        return y if self.target_class is None else torch.where(y >= 0, self.target_class, y)


def find_class_index(label: int | str, classes: Sequence[str], data: str, key: str) -> int:
    """Index of the class with a label among the classes of the data.

    Raises:
        ConfigMismatchError: the label is unknown."""
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
        f"{key}={label}: {data} has classes {class_list}; choose one of these, or null for any except the true one"
    )


def _equal_numbers(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return False
