"""Values in the syntax of the command line: ``null``, ``true``, ``[a,b]``."""

from __future__ import annotations

from collections.abc import Mapping

QUOTED_CHARACTERS = frozenset(" ,[]{}'\"=:")  # text with one of these is quoted


def format_typed(value: object) -> str:
    """Format a value as typed after ``key=``.

    >>> format_typed([None, True, 0.5, {"a": "two words"}])
    "[null,true,0.5,{a:'two words'}]"
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_inside(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_inside, value)) + "]"
    return str(value)


def _inside(value: object) -> str:
    """Format an item of a list or a dictionary; text with a separator is quoted."""
    if isinstance(value, str) and (not value or QUOTED_CHARACTERS.intersection(value)):
        escaped = value.replace("'", "\\'")
        return f"'{escaped}'"
    return format_typed(value)
