"""Stubs: objects with only the members of some protocols, delegated to a real object."""

from __future__ import annotations

from typing import Any

from typing_extensions import get_protocol_members, is_protocol


def restrict(thing: object, *protocols: type) -> Any:
    """An object with only the members of the protocols, delegated to ``thing``."""
    if not all(is_protocol(protocol) for protocol in protocols):
        return thing  # its class has exactly these members
    names = sorted({name for protocol in protocols for name in get_protocol_members(protocol)})
    body: dict[str, Any] = {"__slots__": ("lent",)}
    for name in names:
        if name == "__call__":
            body[name] = lambda self, *args, **keys: self.lent(*args, **keys)
        else:
            body[name] = property(lambda self, name=name: getattr(self.lent, name))
    stub = type("Only" + "And".join(protocol.__name__ for protocol in protocols), (), body)()
    stub.lent = thing
    return stub
