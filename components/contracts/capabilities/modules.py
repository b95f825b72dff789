"""Protocols with members that a module holds as parameters or buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from torch import nn
from typing_extensions import get_protocol_members

if TYPE_CHECKING:
    from abc import ABCMeta as ProtocolMeta
else:
    ProtocolMeta = type(Protocol)


Shown = TypeVar("Shown", contravariant=True)  # the batch that a model reads: Batch, Rows


class ModuleProtocol(ProtocolMeta):
    """Metaclass of protocols with members that modules hold as parameters or buffers.

    Since Python 3.12, ``isinstance`` with a protocol does not call ``__getattr__``, through which
    modules expose them; this metaclass calls it on every version."""

    def __instancecheck__(cls, thing: object) -> bool:
        if super().__instancecheck__(thing):
            return True
        return (
            isinstance(thing, nn.Module)
            and vars(cls).get("_is_protocol", False)
            and all(getattr(thing, name, None) is not None for name in get_protocol_members(cls))
        )


class Trainable(Protocol):
    """A module with parameters that an optimizer updates and a checkpoint stores.

    ``nn.Module`` has all of these methods.
    """

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]: ...

    def zero_grad(self, set_to_none: bool = True) -> None: ...

    def train(self, mode: bool = True) -> Any: ...  # False for prediction mode

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any: ...
