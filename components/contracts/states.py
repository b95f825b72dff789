"""States: what the next step of an inference method needs, and nothing else.

A state is a dataclass of tensors, numbers, strings, containers of these, other dataclasses, modules and optimizers, so that
a checkpoint can keep it.  What ``init`` makes anew from the config, bit for bit (a model without parameters of its own, the
training set, a threat), is declared ``rebuilt()``: a checkpoint leaves it out, and a resumed run takes that of its fresh
state."""

from __future__ import annotations

from dataclasses import field
from typing import Any

REBUILT = "rebuilt"


def rebuilt() -> Any:
    """A field of a state that a checkpoint leaves out."""
    return field(metadata={REBUILT: True})
