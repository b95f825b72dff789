"""Base of all components, and types of their keys."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveFloat, ValidationInfo
from torch import Tensor
from typing_extensions import TypeVar

from components.contracts.requirements import Requirements, inherit_requirements

if TYPE_CHECKING:
    from components.contracts.problems import Target

# types of numeric keys restricted to an interval
ZeroToOne = Annotated[float, Field(ge=0, le=1)]
ZeroToBelowOne = Annotated[float, Field(ge=0, lt=1)]
AboveZeroToOne = Annotated[float, Field(gt=0, le=1)]
BetweenZeroAndOne = Annotated[float, Field(gt=0, lt=1)]
AtLeastTwo = Annotated[int, Field(ge=2)]
LearnableScale = Literal["learned"] | PositiveFloat
PositivePair = Annotated[list[PositiveFloat], Field(min_length=2, max_length=2)]
T = TypeVar("T", int, float)
# Type parameters of roles.
P = TypeVar("P", default=Any)  # a problem
M = TypeVar("M", default=Any)  # a built model, or the requested capabilities of one
B = TypeVar("B", default=Any)  # input of a step
# state: a dataclass of tensors, numbers, modules and optimizers, sufficient for the next step
S = TypeVar("S", default=Any)


def _increasing(values: list[T], info: ValidationInfo) -> list[T]:
    if sorted(set(values)) != values:
        raise ValueError(f"{info.field_name}: {values} must increase")
    return values


Increasing = AfterValidator(_increasing)  # of a list of numbers
Item = TypeVar("Item")
NonEmptyList = Annotated[list[Item], Field(min_length=1)]
# name -> number or tensor: diagnostics, never read by the next step
Info = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """Location and options for loading a dataset."""

    data_dir: Path
    device: torch.device
    dtype: torch.dtype
    replicates: int  # > 1 only for datasets with replicates as a leading tensor dimension
    offline: bool = False  # True to attempt no download

    def place(self, value: Tensor) -> Tensor:
        """The same numbers on the device and with the dtype of the run."""
        return value.to(device=self.device, dtype=self.dtype)

    def tensor(self, values: Any) -> Tensor:
        """Convert numbers or an array to a tensor on the device and with the dtype of the run."""
        return torch.tensor(values, dtype=self.dtype, device=self.device)


class StrictKeys(BaseModel):
    """Keys of a YAML mapping; unknown keys are errors, and values are not converted to other
    types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Component(StrictKeys, protected_namespaces=(), allow_inf_nan=False):
    """One registered class."""

    # requirements on the other components of a run
    requires: ClassVar[Requirements] = Requirements()
    # keys inherited by its nested components
    inherited_keys: ClassVar[Set[str]] = frozenset()
    # keys of its YAML for the evaluation
    threat_keys: ClassVar[Set[str]] = frozenset()
    # keys that name user code, "module:function"
    imports: ClassVar[Set[str]] = frozenset()
    # keys that name a user's file -> the key that holds its SHA-256
    reads: ClassVar[dict[str, str]] = {}
    name: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.requires = inherit_requirements(cls)
        for name, value in list(vars(cls).items()):
            if isinstance(value, set) and name[0] != "_":  # without pydantic's own
                setattr(cls, name, frozenset(value))

    def labels_misfit(self, target: Target) -> tuple[str, str] | None:
        """A setting of the component that is incompatible with a kind of labels.

        Args:
            target: kind of labels that the class supports.

        Returns:
            The key with its value, and the key with a compatible value; None if all keys are
            compatible.
        """
        return None

    @classmethod
    def yaml_keys(cls) -> Set[str]:
        """All keys of its YAML."""
        return frozenset(cls.model_fields) | cls.threat_keys
