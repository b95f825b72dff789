"""States: exactly the data that the next step of an inference method needs.

A state is a dataclass of tensors, numbers, strings, containers of these, other
dataclasses, modules, optimizers and traces (``contracts.traces``: they gain a row per
step), so that a checkpoint can keep it.  Fields that ``init`` reproduces from the
config, bit for bit (a model without parameters of its own, the training set, a threat),
are declared ``rebuilt()``: a checkpoint leaves them out, and a resumed run takes them
from its fresh state.  What is learned in one go, and goes along to another device, is ``placed()``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

REBUILT = "rebuilt"
PLACED = "placed"


def rebuilt() -> Any:
    """A field of a state that a checkpoint leaves out."""
    return field(metadata={REBUILT: True})


def placed() -> Any:
    """A field that is None before something is learned, and whose tensors lie where the run is.

    Other tensors that a fresh state does not have go back to the CPU, where a run on the CPU left
    them: draws, say, are kept there on any device."""
    return field(default=None, metadata={PLACED: True})


@runtime_checkable
class InPlaceLoadable(Protocol):
    """A part of a state that is loaded in place.

    Modules, optimizers, and any object with the same state methods qualify.
    """

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...
