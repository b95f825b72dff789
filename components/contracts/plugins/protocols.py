"""Protocols of classes, found from their members or from the return annotation of a method, and
names of protocols in messages.

The word of a protocol, in messages and in the index, is its name in snake case: ``log_joint`` of
``LogJoint``.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Iterable
from functools import cache
from types import FunctionType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from typing_extensions import get_protocol_members, is_protocol


def to_word(protocol: object) -> str:
    """Word of a protocol in snake case. Strings are converted in the same way."""
    name = protocol.__name__ if isinstance(protocol, type) else str(protocol)
    return re.sub(r"(?<=.)(?=[A-Z])", "_", name).lower()


def list_words(protocols: Iterable[type]) -> str:
    """The words of protocols, sorted, with commas between them."""
    return ", ".join(sorted(map(to_word, protocols)))


def missing(thing: object, protocols: Iterable[type]) -> list[str]:
    """Sorted names of the protocols that a built object does not have in full."""
    return sorted(to_word(protocol) for protocol in protocols if not isinstance(thing, protocol))


class ReturnedProtocols(NamedTuple):
    """Class variable: the protocols of the class in the return annotation of a method.

    Without a method, the protocols of the component itself.

    For a union, the protocols that each of its classes has.  The class variable does not exist if
    the method has no such annotation, or one that cannot be evaluated.
    """

    method: str
    protocols: frozenset[type]

    def __get__(self, component: object, cls: type) -> frozenset[type]:
        try:
            hints = get_type_hints(getattr(cls, self.method)) if self.method else {"return": cls}
            returned = hints["return"]
        except (KeyError, NameError):
            raise AttributeError(self.method) from None
        union = get_origin(returned) in (Union, UnionType)
        classes = get_args(returned) if union else (returned,)
        each = (protocols_of(get_origin(member) or member, self.protocols) for member in classes)
        return self.protocols.intersection(*each)


class OfferedProtocols(ReturnedProtocols):
    """Protocols that do not depend on settings, unlike those in ``offers_where``."""

    def __get__(self, component: object, cls: Any) -> frozenset[type]:
        return frozenset(super().__get__(component, cls) - cls.offers_where.keys())


@cache
def protocols_of(cls: Any, protocols: frozenset[type]) -> frozenset[type]:
    """The subset of ``protocols`` with members that are all attributes of a class, annotations in
    it, or assigned to ``self`` by its constructor."""
    names = frozenset().union(*map(_names, cls.__mro__ if isinstance(cls, type) else ()))
    return frozenset(
        protocol
        for protocol in protocols
        if (
            get_protocol_members(protocol) <= names
            if is_protocol(protocol)
            else issubclass(cls, protocol)
        )
    )


@cache
def _names(cls: type) -> frozenset[str]:
    """Names of the members that a class itself defines."""
    constructor = vars(cls).get("__init__")
    assigned = dis.get_instructions(constructor) if isinstance(constructor, FunctionType) else ()
    return frozenset(
        {*vars(cls), *vars(cls).get("__annotations__", ())}
        | {each.argval for each in assigned if each.opname == "STORE_ATTR"}
    )
