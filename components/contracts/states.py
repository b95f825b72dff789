"""States: exactly the data that the next step of an inference method needs.

A state is a dataclass of tensors, numbers, strings, containers of these, other
dataclasses, modules, optimizers and traces (``contracts.traces``: they gain a row per
step), so that a checkpoint can store it.  Fields that ``init`` reproduces bit for bit from the
config (a model without its own parameters, the training set, a threat) are declared ``not_checkpointed()``:
checkpoints omit them, and a resumed run takes them from its fresh state.  Quantities that are
learned in a single step and follow the run's device are ``placed()``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

NOT_CHECKPOINTED = "not_checkpointed"
PLACED = "placed"


def not_checkpointed() -> Any:
    """A field of a state that checkpoints omit."""
    return field(metadata={NOT_CHECKPOINTED: True})


def placed() -> Any:
    """A field that starts as None and, once learned, has tensors on the device of the run.

    Other tensors that a fresh state lacks are loaded to the CPU; draws, for example, are stored
    there on any device."""
    return field(default=None, metadata={PLACED: True})


@runtime_checkable
class InPlaceLoadable(Protocol):
    """A part of a state that is loaded in place.

    For example modules, optimizers, and objects with the same state methods.
    """

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...
