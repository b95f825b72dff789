"""States: exactly the data that the next step of an inference method needs.

A state is a dataclass of tensors, numbers, strings, containers of these, other
dataclasses, modules, optimizers and traces (``contracts.traces``: they gain a row per
step), so that a checkpoint can keep it.  Fields that ``init`` reproduces from the
config, bit for bit (a model without parameters of its own, the training set, a threat),
are declared ``rebuilt()``: a checkpoint leaves them out, and a resumed run takes them
from its fresh state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

from components.old_names import answer_old_names

REBUILT = "rebuilt"


def rebuilt() -> Any:
    """A field of a state that a checkpoint leaves out."""
    return field(metadata={REBUILT: True})


@runtime_checkable
class InPlaceLoadable(Protocol):
    """A part of a state that is loaded in place.

    Modules, optimizers, and any object with the same state methods qualify.
    """

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...


answer_old_names(globals())
