"""States: what the next step of an inference method needs, and nothing else.

A state is a dataclass of tensors, numbers, strings, containers of these, other dataclasses, modules, optimizers and traces
(``contracts.traces``: what gains a row a step), so that a checkpoint can keep it.  What ``init`` makes anew from the config,
bit for bit (a model without parameters of its own, the training set, a threat), is declared ``rebuilt()``: a checkpoint
leaves it out, and a resumed run takes that of its fresh state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

REBUILT = "rebuilt"


def rebuilt() -> Any:
    """A field of a state that a checkpoint leaves out."""
    return field(metadata={REBUILT: True})


@runtime_checkable
class Keepable(Protocol):
    """A part of a state that is loaded in place: modules, optimizers, and whatever says its state as they do."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...
